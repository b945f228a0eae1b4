import { type Kysely, sql } from "kysely";

/** Limits of project keys (JSON), when they were used, and the secret that works on during a rotation's overlap. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}

const STATEMENTS: readonly string[] = [
  `alter table project_key add column limits text not null default '{}'`,
  `alter table project_key add column last_used_at bigint`,
  `alter table project_key add column previous_public_id text`,
  `alter table project_key add column previous_secret_hash text`,
  `alter table project_key add column previous_ends_at bigint`,
  `alter table project_key add column previous_last_used_at bigint`,
  `create unique index project_key_previous_secret_idx on project_key (previous_secret_hash)`,
];
