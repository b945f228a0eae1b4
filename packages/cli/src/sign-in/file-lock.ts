import { linkSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { setTimeout as wait } from "node:timers/promises";
import type { Clock } from "@fairlead/protocol/clock";
import type { IdSource } from "@fairlead/protocol/ids";
import { z } from "zod";
import { CliError } from "../cli-error.ts";

/** A lock between processes that may die at any moment: a file that names its holder. */

export interface LockPorts {
  readonly clock: Clock;
  readonly ids: IdSource;
}

const holderSchema = z.object({ id: z.string().regex(/^\w+$/), pid: z.number().int().positive(), host: z.string() });
type Holder = z.infer<typeof holderSchema>;

const PATIENCE_MS = 30_000;
const LOOK_AGAIN_MS = 50;
/** Far more than any holder needs. It frees locks whose process number lives on, or lives on another machine. */
const STALE_MS = 300_000;

/**
 * Runs the work while no other process holds this lock.
 * @param path of the lock file; its folder exists.
 * @throws CliError when the lock is not to be had within half a minute.
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
  // Written first and linked into place, so that nobody ever reads half a holder.
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

/** Only the one who made the file of this name may replace that holder's lock, and only while it is still there. */
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

/** By the file system's own time: the clocks of two machines that share a home folder may differ. */
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
  return `Another fairlead command has held ${path} for ${PATIENCE_MS / 1000} s. Wait for it; if none runs, delete that file.`;
}
