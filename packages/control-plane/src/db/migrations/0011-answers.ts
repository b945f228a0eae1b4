import { type Kysely, sql } from "kysely";

/** Answers of the inference host, kept for repeats of their calls; and the limits that projects have of their own. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}

const STATEMENTS: readonly string[] = [
  `create table kept_answer (project_id text not null references project (id) on delete cascade, caller_id text not null, key text not null,
    fingerprint text not null, sealed text, expires_at bigint not null, primary key (project_id, caller_id, key))`,
  `create index kept_answer_expiry_idx on kept_answer (expires_at)`,
  `create table project_limits (project_id text not null primary key references project (id) on delete cascade, requests_per_minute bigint,
    tokens_per_minute bigint, parallel_calls bigint)`,
];
