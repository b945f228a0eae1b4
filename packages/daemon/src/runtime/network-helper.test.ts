import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { imageTar } from "./network-helper.ts";

test("the helper's image consists of folders and links to the machine's own programs", () => {
  const listed = execFileSync("tar", ["-tvf", "-"], { input: imageTar(), encoding: "utf8" });
  expect(listed).toMatch(/^drwxr-xr-x 0\/0 .* host\/$/m);
  expect(listed).toMatch(/^lrwxr-xr-x 0\/0 .* usr -> host\/usr$/m);
  expect(listed).toMatch(/^lrwxr-xr-x 0\/0 .* etc\/alternatives -> \.\.\/host\/etc\/alternatives$/m);
  expect(listed.match(/^-/gm)).toBeNull();
});
