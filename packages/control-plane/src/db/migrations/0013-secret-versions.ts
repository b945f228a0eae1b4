import { type Kysely, sql } from "kysely";

/** Secrets count their versions, also over a deletion, and direct ones remember the key that they were sealed to. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}

/** One sealed to a node before now carries no name inside, so it passes for sealed to no key at all: stale. */
const STATEMENTS: readonly string[] = [
  `alter table node_secret add column version bigint not null default 1`,
  `alter table node_secret add column sealed_to text`,
  `alter table node_secret add column provider_key bigint not null default 0`,
  `alter table node_secret add column deleted bigint not null default 0`,
];
