import { Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import { inTransaction, type OpenedHandle, type StatementLogger } from "./opened-handle.ts";
import type { Database } from "./schema.ts";

const MAX_CONNECTIONS = 10;
const CONNECT_TIMEOUT_MS = 5000;
const INT8 = 20;

/** Rows come back as on SQLite: `pg` would give 64-bit integers as text, and ours stay below 2^53 (money is read as text on purpose). */
export function openPostgres(url: string, logger: StatementLogger): OpenedHandle {
  const pool = new pg.Pool({
    connectionString: url,
    max: MAX_CONNECTIONS,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    types: {
      getTypeParser: (oid, format) => (oid === INT8 ? Number : pg.types.getTypeParser(oid, format as "text")),
    },
  });
  // A connection that the server closes is no fault of ours; the next query opens another. The pool listens to idle ones alone:
  // without a listener of its own, one that breaks while it is in use would end the process.
  pool.on("error", () => undefined);
  pool.on("connect", (client) => client.on("error", () => undefined));
  const db = new Kysely<Database>({
    dialect: new PostgresDialect({ pool }),
    log: logger({ handle: "main", blocking: false }),
  });
  // Its queries run in the database's own processes: none of them holds up our thread.
  return { db, longReads: db, writes: db, writeTogether: inTransaction(db), close: () => db.destroy() };
}
