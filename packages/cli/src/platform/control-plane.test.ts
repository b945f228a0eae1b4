import { expect, test } from "vitest";
import { explain } from "./control-plane.ts";

test("all configuration mistakes are reported together, with their paths", () => {
  const error = Object.assign(new Error("bad"), {
    mistakes: [
      { path: "server.platform.port", message: "must be at most 65535" },
      { path: "log.level", message: "unknown level" },
    ],
  });
  expect(explain(error, "config.yaml")).toMatchObject({
    exitCode: 2,
    message: expect.stringMatching(/config\.yaml:\n {2}server\.platform\.port: .*\n {2}log\.level: unknown level/),
  });
});

test("any other error is passed on unchanged", () => {
  const error = new Error("disk");
  expect(explain(error, undefined)).toBe(error);
});

test("a startup error is reported with its message, without a stack trace", () => {
  const error = Object.assign(new Error("Another server holds the data folder."), { name: "StartError" });
  expect(explain(error, undefined)).toMatchObject({ exitCode: 1, message: "Another server holds the data folder." });
});
