import { type Kysely, sql } from "kysely";

/** What daemons say of their machines, and which nodes were deleted: their daemons are told so when they ask by their key. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}

const STATEMENTS: readonly string[] = [
  `alter table node add column conditions text not null default '[]'`,
  `create table deleted_node (
    id text primary key,
    signing_key text not null,
    deleted_at bigint not null
  )`,
];
