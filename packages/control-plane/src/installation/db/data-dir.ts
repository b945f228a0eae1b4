import { mkdirSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { StartError } from "../process/start-error.ts";
import { acquireServerLock, type ServerLock } from "./postgres/server-lock.ts";

/** `fairlead admin` holds the lock briefly while no server is running; a start waits for it. */
const LOCK_TRIES = 20;
const LOCK_RETRY_MS = 50;

/** @throws StartError if the folder cannot be created. */
export function makeDataDir(dataDir: string): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new StartError(
      `The data folder cannot be created: ${why}. Correct dataDir or the owner of its parent folder.`,
    );
  }
}

/** Makes this process the folder's server. @throws StartError if another one is running. */
export async function holdDataDir(dataDir: string): Promise<ServerLock> {
  makeDataDir(dataDir);
  for (let attempt = 1; attempt <= LOCK_TRIES; attempt++) {
    const lock = acquireServerLock(dataDir);
    if (lock) return lock;
    await delay(LOCK_RETRY_MS);
  }
  throw new StartError(
    `Another server is using the data folder ${dataDir}. Stop it, or set dataDir to another folder.`,
  );
}
