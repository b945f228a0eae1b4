import { expect, test } from "vitest";
import { explainMistakes } from "./control-plane.ts";

test("every mistake of a configuration is told at once, with its path", () => {
  const error = Object.assign(new Error("bad"), {
    mistakes: [
      { path: "server.platform.port", message: "must be at most 65535" },
      { path: "log.level", message: "unknown level" },
    ],
  });
  expect(explainMistakes(error, "config.yaml")).toMatchObject({
    exitCode: 1,
    message: expect.stringMatching(/config\.yaml:\n {2}server\.platform\.port: .*\n {2}log\.level: unknown level/),
  });
});

test("any other error passes unchanged", () => {
  const error = new Error("disk");
  expect(explainMistakes(error, undefined)).toBe(error);
});
