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

test("a new master key is 32 bytes in a file of its owner's, and reads back the same", () => {
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

test("the key's id differs from key to key, and tells nothing of it", () => {
  createMasterKey(file);
  createMasterKey(join(dir, "other.key"));
  const key = readMasterKey(file);
  expect(key.id).not.toBe(readMasterKey(join(dir, "other.key")).id);
  expect(Buffer.from(key.bytes).toString("hex")).not.toContain(key.id);
});

test.each([0o640, 0o604, 0o660])("a file of mode %o is refused, with the command that mends it", (mode) => {
  createMasterKey(file);
  chmodSync(file, mode);
  expect(() => readMasterKey(file)).toThrow(`chmod 600 ${file}`);
});

test.each(["", "short", Buffer.alloc(31).toString("base64")])("a file that holds %j is refused", (text) => {
  writeFileSync(file, text, { mode: 0o600 });
  expect(() => readMasterKey(file)).toThrow(/does not contain 32 bytes/);
});

test("a missing file is a reason not to start, in words", () => {
  expect(() => readMasterKey(file)).toThrow(/cannot be read: ENOENT.*secrets in the store cannot be decrypted/);
});
