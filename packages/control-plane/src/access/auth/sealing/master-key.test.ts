import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createMasterKey, readMasterKey } from "./master-key.ts";

let dir: string;
let file: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "fairlead-key-"));
  file = join(dir, "master.key");
});
afterEach(() => rmSync(dir, { recursive: true }));

test("a new master key is 32 bytes in a file that only its owner can access, and reads back unchanged", () => {
  createMasterKey(file);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readMasterKey(file).bytes).toHaveLength(32);
  expect(readMasterKey(file)).toEqual(readMasterKey(file));
  expect(readdirSync(dir)).toEqual(["master.key"]);
});

test("an existing master key is never replaced", () => {
  createMasterKey(file);
  const before = readFileSync(file, "utf8");
  expect(() => createMasterKey(file)).toThrow(/EEXIST/);
  expect(readFileSync(file, "utf8")).toBe(before);
  expect(readdirSync(dir)).toEqual(["master.key"]);
});

test("the ID of a master key is different for every key, and reveals nothing about it", () => {
  createMasterKey(file);
  createMasterKey(join(dir, "other.key"));
  const key = readMasterKey(file);
  expect(key.id).not.toBe(readMasterKey(join(dir, "other.key")).id);
  expect(Buffer.from(key.bytes).toString("hex")).not.toContain(key.id);
});

test.each([0o640, 0o604, 0o660])("a file with mode %o is rejected, with the command that fixes it", (mode) => {
  createMasterKey(file);
  chmodSync(file, mode);
  expect(() => readMasterKey(file)).toThrow(`chmod 600 ${file}`);
});

test.each(["", "short", Buffer.alloc(31).toString("base64")])("a file that contains %j is rejected", (text) => {
  writeFileSync(file, text, { mode: 0o600 });
  expect(() => readMasterKey(file)).toThrow(/does not contain 32 bytes/);
});

test("a missing file prevents the start with a clear message", () => {
  expect(() => readMasterKey(file)).toThrow(/cannot be read: ENOENT.*secrets in the store cannot be decrypted/);
});
