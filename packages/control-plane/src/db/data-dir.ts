import { mkdirSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { StartError } from "../start-error.ts";
import { acquireServerLock, type ServerLock } from "./server-lock.ts";

/** `fairlead admin` holds the lock for a moment where no server runs; a start waits that out. */
const LOCK_TRIES = 20;
const LOCK_RETRY_MS = 50;

/** @throws StartError when the folder cannot be made. */
export function makeDataDir(dataDir: string): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new StartError(`The data folder cannot be made: ${why}. Correct dataDir or its parent's owner.`);
  }
}

/** Makes this process the folder's server. @throws StartError when another one is. */
export async function holdDataDir(dataDir: string): Promise<ServerLock> {
  makeDataDir(dataDir);
  for (let attempt = 1; attempt <= LOCK_TRIES; attempt++) {
    const lock = acquireServerLock(dataDir);
    if (lock) return lock;
    await delay(LOCK_RETRY_MS);
  }
  throw new StartError(`Another server runs on the data folder ${dataDir}. Stop it, or set dataDir to another folder.`);
}
