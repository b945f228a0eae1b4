import { sql } from "kysely";
import { openPostgres } from "./open-postgres.ts";
import { openSqlite } from "./open-sqlite.ts";
import type { OpenedHandle, StatementLogger } from "./opened-handle.ts";
import type { OnStatement } from "./statement-watch.ts";

export interface OpenedDatabase extends OpenedHandle {
  /** Rejects where the store does not answer. */
  ping(): Promise<void>;
}

/** A file (or `:memory:`) for SQLite, a `postgres://` URL for PostgreSQL. */
export type StoreLocation = { readonly file: string } | { readonly url: string };

/** Opens or creates the store. The schema is `migrate`'s work. */
export function openDatabase(location: StoreLocation, onStatement?: OnStatement): OpenedDatabase {
  const logger: StatementLogger = (on) => (event) =>
    onStatement?.({ sql: event.query.sql, milliseconds: event.queryDurationMillis, ...on });
  const handle = "file" in location ? openSqlite(location.file, logger) : openPostgres(location.url, logger);
  const ping = async (): Promise<void> => {
    await sql`select 1`.execute(handle.db);
  };
  return { ...handle, ping };
}
