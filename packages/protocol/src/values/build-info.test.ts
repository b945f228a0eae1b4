import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { BUILD, versionLine } from "./build-info.ts";

test("a program run from source has the version of its packages, and no commit", async () => {
  for (const name of ["protocol", "daemon", "control-plane", "cli"]) {
    const text = await readFile(new URL(`../../../${name}/package.json`, import.meta.url), "utf8");
    expect(JSON.parse(text), name).toMatchObject({ version: BUILD.version });
  }
  expect(versionLine(BUILD)).toBe(`${BUILD.version} (development)`);
});
