import { type Kysely, sql } from "kysely";

/** How long a node that drains waits for its calls, and how often its engine was started anew on somebody's word. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}

const STATEMENTS: readonly string[] = [
  `alter table node add column drain_until bigint`,
  `alter table node add column restarts integer not null default 0`,
];
