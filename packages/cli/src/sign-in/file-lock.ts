import { linkSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { setTimeout as wait } from "node:timers/promises";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { IdSource } from "@fairlead/protocol/values/ids";
import { z } from "zod";
import { CliError } from "../cli-error.ts";

/** A lock file that names its holder, so that the lock of a dead process can be taken over. */

export interface LockPorts {
  readonly clock: Clock;
  readonly ids: IdSource;
}

const holderSchema = z.object({ id: z.string().regex(/^\w+$/), pid: z.number().int().positive(), host: z.string() });
type Holder = z.infer<typeof holderSchema>;

const PATIENCE_MS = 30_000;
const LOOK_AGAIN_MS = 50;
/** Much longer than any holder needs. Frees locks whose PID was reused or is on another machine. */
const STALE_MS = 300_000;

/**
 * Runs the work while holding the lock.
 * @param path of the lock file, in an existing folder.
 * @throws CliError if the lock is not free within 30 s.
 */
export async function withFileLock<T>(path: string, ports: LockPorts, work: () => Promise<T>): Promise<T> {
  const holder: Holder = { id: ports.ids.next("request"), pid: process.pid, host: hostname() };
  await acquire(path, holder, ports.clock);
  try {
    return await work();
  } finally {
    if (readHolder(path)?.id === holder.id) rmSync(path, { force: true });
  }
}

async function acquire(path: string, holder: Holder, clock: Clock): Promise<void> {
  const own = `${path}.${holder.id}`;
  const deadline = clock.monotonic() + PATIENCE_MS;
  // Written first and then linked, so that no reader sees a partial file.
  writeFileSync(own, JSON.stringify(holder), { flag: "wx", mode: 0o600 });
  try {
    while (!(tryLink(own, path) || takeOver(own, path))) {
      if (clock.monotonic() > deadline) throw new CliError(heldTooLong(path));
      await wait(LOOK_AGAIN_MS);
    }
  } finally {
    rmSync(own, { force: true });
  }
}

/** Only the process that creates `right` may replace the dead holder's lock. */
function takeOver(own: string, path: string): boolean {
  const dead = readHolder(path);
  if (!(dead && (hasDied(dead) || isOld(own, path)))) return false;
  const right = `${path}.${dead.id}.over`;
  if (!tryLink(own, right)) return false;
  try {
    if (readHolder(path)?.id !== dead.id) return false;
    renameSync(own, path);
    return true;
  } finally {
    rmSync(right, { force: true });
  }
}

function hasDied({ pid, host }: Holder): boolean {
  return host === hostname() && !isAlive(pid);
}

/** Uses file system time: machines that share a home folder may have different clocks. */
function isOld(own: string, path: string): boolean {
  const taken = statSync(path, { throwIfNoEntry: false });
  return taken !== undefined && statSync(own).mtimeMs - taken.mtimeMs > STALE_MS;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === "EPERM";
  }
}

/** @returns whether the name was free. */
function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  }
}

function readHolder(path: string): Holder | null {
  try {
    return holderSchema.safeParse(JSON.parse(readFileSync(path, "utf8"))).data ?? null;
  } catch (error) {
    if (codeOf(error) === "ENOENT" || error instanceof SyntaxError) return null;
    throw error;
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}

function heldTooLong(path: string): string {
  return `Another fairlead command has locked ${path} for ${PATIENCE_MS / 1000} s. Wait for it to finish. If no other command is running, delete the file.`;
}
