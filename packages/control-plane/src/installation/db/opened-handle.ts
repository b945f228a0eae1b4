import type { CompiledQuery, Kysely, Logger } from "kysely";
import type { Statement } from "./statement-watch.ts";
import type { Database } from "./tables/schema.ts";

/** What opening either database returns. */
export interface OpenedHandle {
  readonly db: Kysely<Database>;
  /** For slow work: searches, sums, chunked deletion. Never blocks the main thread. */
  readonly longReads: Kysely<Database>;
  /** For migrations and operator commands, without a time limit. */
  readonly maintenance: Kysely<Database>;
  /** For single writes of calls. Never blocks the main thread or waits for a long read. */
  readonly writes: Kysely<Database>;
  /** Like `writes`, for several statements in one transaction. */
  readonly writeTogether: WriteTogether;
  close(): Promise<void>;
}

/** For the query builder's `log`; says where its statements run. */
export type StatementLogger = (on: Pick<Statement, "handle" | "blocking">) => Logger;

export type WriteTogether = (statements: readonly CompiledQuery[]) => Promise<void>;

/** For stores whose transactions do not block the main thread, or where that does not matter. */
export function inTransaction(db: Kysely<Database>): WriteTogether {
  return (statements) =>
    db.transaction().execute(async (transaction) => {
      for (const statement of statements) await transaction.executeQuery(statement);
    });
}
