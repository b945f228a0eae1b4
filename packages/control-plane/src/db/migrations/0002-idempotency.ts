import { type Kysely, sql } from "kysely";

/** Answers of creates, kept for a repeat of the call. `project_id` is "" where the call names none. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}

const STATEMENTS: readonly string[] = [
  `create table idempotency_record (user_id text not null, project_id text not null, route text not null, key text not null,
    fingerprint text not null, resource_id text not null, answer text, expires_at bigint not null, primary key (user_id, project_id, route, key))`,
  `create index idempotency_record_expires_idx on idempotency_record (expires_at)`,
];
