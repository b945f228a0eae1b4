import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { describeClient } from "./support.ts";

describeClient("the tests of third-party clients", () => {
  test("type-check against the clients' own types", { timeout: 120_000 }, () => {
    const folder = new URL(".", import.meta.url).pathname;
    expect(execFileSync("tsc", ["-p", folder], { encoding: "utf8" })).toBe("");
  });

  test.each(["http://192.0.2.1/", "https://192.0.2.1/", "https://api.example.org/"])(
    "connect to no other host: %s",
    async (url) => {
      await expect(fetch(url)).rejects.toMatchObject({
        cause: { message: expect.stringMatching(/^A test would have spoken to /) as string },
      });
    },
  );
});
