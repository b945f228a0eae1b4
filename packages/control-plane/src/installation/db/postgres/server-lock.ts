import { chmodSync } from "node:fs";
import { join } from "node:path";
import Sqlite from "better-sqlite3";

export interface ServerLock {
  release(): void;
}

/** An unreferenced handle is garbage-collected, which releases its lock. */
const held = new Set<Sqlite.Database>();

/**
 * Makes this process the only server of a data folder. The lock is an open exclusive transaction on a tiny database, so
 * it ends with the process and leaves no stale file. Nothing else may open that file: closing any descriptor of it
 * would release the lock (POSIX).
 * @returns null if another process holds it.
 */
export function acquireServerLock(dataDir: string): ServerLock | null {
  const file = join(dataDir, "server.lock");
  const handle = new Sqlite(file, { timeout: 0 });
  try {
    handle.exec("begin exclusive");
    chmodSync(file, 0o600);
  } catch (error) {
    handle.close();
    if (error instanceof Sqlite.SqliteError && error.code.startsWith("SQLITE_BUSY")) return null;
    throw error;
  }
  held.add(handle);
  return {
    release: () => {
      held.delete(handle);
      handle.close();
    },
  };
}
