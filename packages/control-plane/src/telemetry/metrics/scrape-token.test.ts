import { chmodSync, mkdtempSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TestClock } from "@fairlead/protocol/testing/test-clock";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createLog } from "../../installation/process/log.ts";
import { ScrapeToken } from "./scrape-token.ts";

const FIRST = "first-token-of-enough-characters";
const NEXT = "next-token-of-enough-characters";

let folder: string;
let file: string;
let clock: TestClock;
let warnings: string[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "fairlead-scrape-"));
  file = join(folder, "token");
  clock = new TestClock();
  warnings = [];
  writeFileSync(file, `${FIRST}\n`, { mode: 0o600 });
});
afterEach(() => rmSync(folder, { recursive: true }));

const open = (): ScrapeToken => {
  const log = createLog({ level: "warn", destination: { write: (line) => void warnings.push(line) } });
  return new ScrapeToken({ file, clock, log });
};
const bearer = (token: string): string => `Bearer ${token}`;

test("accepts exactly the token in the file", () => {
  const token = open();
  expect(token.matches(bearer(FIRST))).toBe(true);
  expect(token.matches(`bearer ${FIRST}`)).toBe(true);
  for (const header of [
    undefined,
    "",
    "Bearer",
    "Bearer ",
    FIRST,
    `Basic ${FIRST}`,
    bearer(NEXT),
    bearer(`${FIRST}x`),
  ]) {
    expect(token.matches(header)).toBe(false);
  }
});

test("follows changes of the file, which is read at most once in five seconds", () => {
  const token = open();
  writeFileSync(file, NEXT);
  expect(token.matches(bearer(NEXT))).toBe(false);
  clock.advance(5000);
  expect(token.matches(bearer(NEXT))).toBe(true);
  expect(token.matches(bearer(FIRST))).toBe(false);
});

test("accepts nothing while its file is missing or readable by everyone, and logs that once", () => {
  const token = open();
  unlinkSync(file);
  clock.advance(5000);
  expect(token.matches(bearer(FIRST))).toBe(false);
  clock.advance(5000);
  expect(token.matches(bearer(FIRST))).toBe(false);
  expect(warnings).toHaveLength(1);
  writeFileSync(file, FIRST, { mode: 0o644 });
  clock.advance(5000);
  expect(token.matches(bearer(FIRST))).toBe(false);
  expect(warnings).toHaveLength(2);
  chmodSync(file, 0o640);
  clock.advance(5000);
  expect(token.matches(bearer(FIRST))).toBe(true);
});

test.each([
  ["does not exist", () => unlinkSync(file), /cannot be read/],
  ["can be read by everyone", () => chmodSync(file, 0o604), /chmod/],
  ["is too short to be a secret", () => writeFileSync(file, "secret\n"), /at least 16 characters/],
  ["is too large to be a token", () => writeFileSync(file, "x".repeat(5000)), /at most 4096/],
])("a server does not start with a token file that %s", (_, spoil, why) => {
  spoil();
  expect(open).toThrow(why);
});
