import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { BUILD, versionLine } from "./build-info.ts";

test("from source, a program's version is its packages', and no commit is made up", async () => {
  for (const name of ["protocol", "daemon", "control-plane", "cli"]) {
    const text = await readFile(new URL(`../../../${name}/package.json`, import.meta.url), "utf8");
    expect(JSON.parse(text), name).toMatchObject({ version: BUILD.version });
  }
  expect(versionLine(BUILD)).toBe(`${BUILD.version} (development)`);
});
