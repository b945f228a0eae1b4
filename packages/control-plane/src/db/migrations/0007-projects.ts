import { type Kysely, sql } from "kysely";

/** A project that is being deleted says since when (Unix ms), until it is gone; the index finds those few after a restart. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}

const STATEMENTS: readonly string[] = [
  `alter table project add column deleting_since bigint`,
  `create index project_deleting_idx on project (deleting_since) where deleting_since is not null`,
];
