import type { Kysely, Logger } from "kysely";
import type { Database } from "./schema.ts";
import type { Statement } from "./statement-watch.ts";

/** What either database brings. */
export interface OpenedHandle {
  readonly db: Kysely<Database>;
  /** For what may take long: searches, sums, retention in chunks. Never blocks the main thread. */
  readonly longReads: Kysely<Database>;
  /** For writes that are grouped behind calls. Never blocks the main thread, and never waits for a long read. */
  readonly writes: Kysely<Database>;
  close(): Promise<void>;
}

/** For the query builder's `log`: where its statements run. */
export type StatementLogger = (on: Pick<Statement, "handle" | "blocking">) => Logger;
