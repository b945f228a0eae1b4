import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { describeClient } from "./support.ts";

describeClient("the tests of outside clients", () => {
  test("are typed against what the clients say of themselves", { timeout: 120_000 }, () => {
    const folder = new URL(".", import.meta.url).pathname;
    expect(execFileSync("tsc", ["-p", folder], { encoding: "utf8" })).toBe("");
  });

  test.each(["http://192.0.2.1/", "https://192.0.2.1/", "https://api.example.org/"])(
    "speak to nobody else: %s",
    async (url) => {
      await expect(fetch(url)).rejects.toMatchObject({
        cause: { message: expect.stringMatching(/^A test would have spoken to /) as string },
      });
    },
  );
});
