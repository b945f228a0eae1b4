import type { CompiledQuery, Kysely, Logger } from "kysely";
import type { Database } from "./schema.ts";
import type { Statement } from "./statement-watch.ts";

/** What either database brings. */
export interface OpenedHandle {
  readonly db: Kysely<Database>;
  /** For what may take long: searches, sums, retention in chunks. Never blocks the main thread. */
  readonly longReads: Kysely<Database>;
  /** For single writes behind calls. Never blocks the main thread, and never waits for a long read. */
  readonly writes: Kysely<Database>;
  /** The same for several statements, all or none of them. */
  readonly writeTogether: WriteTogether;
  close(): Promise<void>;
}

/** For the query builder's `log`: where its statements run. */
export type StatementLogger = (on: Pick<Statement, "handle" | "blocking">) => Logger;

export type WriteTogether = (statements: readonly CompiledQuery[]) => Promise<void>;

/** Where transactions do not hold up the main thread, or nobody minds. */
export function inTransaction(db: Kysely<Database>): WriteTogether {
  return (statements) =>
    db.transaction().execute(async (transaction) => {
      for (const statement of statements) await transaction.executeQuery(statement);
    });
}
