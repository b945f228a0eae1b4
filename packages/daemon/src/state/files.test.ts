import { mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { diskFiles, saveAtomically } from "./files.ts";

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "fairlead-files-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

test("a saved file is accessible only to its owner, and leaves nothing beside it", async () => {
  const inner = join(folder, "state");
  await diskFiles.makeFolder(inner);
  await saveAtomically(diskFiles, join(inner, "a.json"), "one");
  await saveAtomically(diskFiles, join(inner, "a.json"), "two");
  expect(await diskFiles.read(join(inner, "a.json"))).toBe("two");
  expect(await readdir(inner)).toEqual(["a.json"]);
  expect((await stat(join(inner, "a.json"))).mode & 0o777).toBe(0o600);
  expect((await stat(inner)).mode & 0o777).toBe(0o700);
});

test("a folder is created with its parents, and creating it again does no harm", async () => {
  const deep = join(folder, "a", "b", "..", "c");
  await diskFiles.makeFolder(deep);
  await diskFiles.makeFolder(deep);
  expect((await stat(join(folder, "a", "c"))).mode & 0o777).toBe(0o700);
});

test("a leftover of a crash neither blocks a save nor passes on its mode", async () => {
  await writeFile(join(folder, "a.json.new"), "torn", { mode: 0o644 });
  await saveAtomically(diskFiles, join(folder, "a.json"), "whole");
  expect((await stat(join(folder, "a.json"))).mode & 0o777).toBe(0o600);
});

test("a missing file reads as null and can be removed", async () => {
  expect(await diskFiles.read(join(folder, "none"))).toBeNull();
  await diskFiles.remove(join(folder, "none"));
});
