import { closeSync, openSync } from "node:fs";
import Sqlite from "better-sqlite3";
import { Kysely, SqliteDialect, sql } from "kysely";
import type { Database } from "./schema.ts";

export interface OpenedDatabase {
  readonly db: Kysely<Database>;
  /** Resolves if the store answers. */
  ping(): Promise<void>;
  close(): Promise<void>;
}

const OWNER_ONLY = 0o600;

/** Opens or creates the store's one file. `file` may be `:memory:`. The schema is `migrate`'s work. */
export function openDatabase(options: { readonly file: string }): OpenedDatabase {
  // SQLite gives its -wal and -shm files the mode of the database file.
  if (options.file !== ":memory:") closeSync(openSync(options.file, "a", OWNER_ONLY));
  const handle = new Sqlite(options.file, { timeout: 5_000 });
  handle.pragma("journal_mode = WAL");
  // An acknowledged write must survive a power cut (design §11).
  handle.pragma("synchronous = FULL");
  handle.pragma("foreign_keys = ON");
  const db = new Kysely<Database>({ dialect: new SqliteDialect({ database: handle }) });
  return {
    db,
    ping: async () => void (await sql`select 1`.execute(db)),
    close: async () => {
      await db.destroy();
      // Kysely leaves a handle open that it has never used.
      if (handle.open) handle.close();
    },
  };
}
