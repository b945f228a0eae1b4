import { type Kysely, type Logger, sql } from "kysely";
import { openPostgres } from "./open-postgres.ts";
import { openSqlite } from "./open-sqlite.ts";
import type { Database } from "./schema.ts";
import type { OnStatement, Statement } from "./statement-watch.ts";

export interface OpenedDatabase {
  readonly db: Kysely<Database>;
  /** For what may take long: searches, sums, retention in chunks. Never blocks the main thread. */
  readonly longReads: Kysely<Database>;
  /** Rejects where the store does not answer. */
  ping(): Promise<void>;
  close(): Promise<void>;
}

/** What either database brings. */
export type OpenedHandle = Pick<OpenedDatabase, "db" | "longReads" | "close">;

/** For the query builder's `log`: where its statements run. */
export type StatementLogger = (on: Pick<Statement, "handle" | "blocking">) => Logger;

/** A file (or `:memory:`) for SQLite, a `postgres://` URL for PostgreSQL. */
export type StoreLocation = { readonly file: string } | { readonly url: string };

/** Opens or creates the store. The schema is `migrate`'s work. */
export function openDatabase(location: StoreLocation, onStatement?: OnStatement): OpenedDatabase {
  const logger: StatementLogger = (on) => (event) =>
    onStatement?.({ sql: event.query.sql, milliseconds: event.queryDurationMillis, ...on });
  const { db, longReads, close } =
    "file" in location ? openSqlite(location.file, logger) : openPostgres(location.url, logger);
  const ping = async (): Promise<void> => {
    await sql`select 1`.execute(db);
  };
  return { db, longReads, ping, close };
}
