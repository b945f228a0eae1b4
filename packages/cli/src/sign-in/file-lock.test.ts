import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@fairlead/protocol/values/clock";
import { systemIds } from "@fairlead/protocol/values/ids";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { withFileLock } from "./file-lock.ts";

const ports = { clock: systemClock, ids: systemIds(() => systemClock.now()) };

let dir: string;
let path: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "fairlead-lock-"));
  path = join(dir, "lock");
});
afterEach(() => rmSync(dir, { recursive: true }));

/** Runs this many holders concurrently. @returns the maximum number of simultaneous holders. */
async function most(holders: number): Promise<number> {
  let inside = 0;
  let together = 0;
  const work = async (): Promise<void> => {
    inside += 1;
    together = Math.max(together, inside);
    await new Promise<void>((resolve) => void setTimeout(resolve, 5));
    inside -= 1;
  };
  await Promise.all(Array.from({ length: holders }, () => withFileLock(path, ports, work)));
  return together;
}

/** The pid of an ended process. */
function deadProcess(): number {
  return spawnSync(process.execPath, ["-e", ""]).pid;
}

function left(holder: { pid: number; host?: string }): void {
  writeFileSync(path, JSON.stringify({ id: "req_left", host: hostname(), ...holder }));
}

describe("withFileLock", () => {
  test("admits one holder at a time, and leaves no file behind", async () => {
    expect(await most(8)).toBe(1);
    expect(readdirSync(dir)).toEqual([]);
  });

  test("releases the lock when the work fails", async () => {
    await expect(withFileLock(path, ports, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
    expect(existsSync(path)).toBe(false);
  });

  test("takes over the lock of a dead process, one waiter at a time", async () => {
    left({ pid: deadProcess() });
    expect(await most(8)).toBe(1);
    expect(readdirSync(dir)).toEqual([]);
  });

  test("takes over the lock of another machine's process only when it is old", async () => {
    left({ pid: deadProcess(), host: "elsewhere" });
    const impatient = { ...ports, clock: { now: () => 0, monotonic: risingBy(20_000) } };
    await expect(withFileLock(path, impatient, async () => {})).rejects.toThrow(
      /has locked .*lock for 30 s.*delete the file/,
    );
    const longAgo = new Date(Date.now() - 600_000);
    utimesSync(path, longAgo, longAgo);
    expect(await most(4)).toBe(1);
  });

  test("respects the lock of a running process", async () => {
    left({ pid: process.pid });
    const impatient = { ...ports, clock: { now: () => 0, monotonic: risingBy(20_000) } };
    await expect(withFileLock(path, impatient, async () => {})).rejects.toThrow("delete the file");
    expect(readdirSync(dir)).toEqual(["lock"]);
  });

  test("does not release a lock that another process has taken over", async () => {
    await withFileLock(path, ports, async () => left({ pid: process.pid }));
    expect(existsSync(path)).toBe(true);
  });
});

function risingBy(step: number): () => number {
  let time = 0;
  return () => (time += step);
}
