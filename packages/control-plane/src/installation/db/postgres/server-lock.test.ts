import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { acquireServerLock } from "./server-lock.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "fairlead-lock-"));
});
afterEach(() => rmSync(dir, { recursive: true }));

test("a data folder has one server at a time", () => {
  const first = acquireServerLock(dir);
  expect(first).not.toBeNull();
  expect(acquireServerLock(dir)).toBeNull();
  first?.release();
  const second = acquireServerLock(dir);
  expect(second).not.toBeNull();
  second?.release();
});

test("the lock file is accessible only to its owner", () => {
  const lock = acquireServerLock(dir);
  expect(statSync(join(dir, "server.lock")).mode & 0o777).toBe(0o600);
  lock?.release();
});

test("a killed server leaves no lock behind", async () => {
  const program = `
    import { acquireServerLock } from "./server-lock.ts";
    acquireServerLock(process.argv[1]);
    process.stdout.write("held");
    setInterval(() => {}, 1000);`;
  const args = ["--conditions=fairlead-source", "--input-type=module", "--eval", program, dir];
  const child = spawn(process.execPath, args, { cwd: import.meta.dirname, stdio: ["ignore", "pipe", "inherit"] });
  try {
    await once(child.stdout, "data");
    expect(acquireServerLock(dir)).toBeNull();
  } finally {
    child.kill("SIGKILL");
    await once(child, "exit");
  }
  const lock = acquireServerLock(dir);
  expect(lock).not.toBeNull();
  lock?.release();
}, 30_000);
