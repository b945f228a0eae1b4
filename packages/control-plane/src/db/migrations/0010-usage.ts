import { type Kysely, sql } from "kysely";

/**
 * What calls used: one row for each, and sums for each hour, kept by the same transactions. Both outlive the project, the keys and the
 * people that they name: a row that comes late must not hold up the others.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}

const STATEMENTS: readonly string[] = [
  `create table usage_record (id text not null primary key, project_id text not null, request_id text not null, at bigint not null,
    key_id text, user_id text, worker_id text, model text, upstream text, dialect text not null, stream integer not null,
    outcome text not null, status integer, input_tokens bigint not null, cached_input_tokens bigint not null,
    output_tokens bigint not null, reasoning_tokens bigint not null, estimated integer not null, cost bigint not null,
    attempts integer not null, overhead_us bigint, first_token_ms bigint, duration_ms bigint not null)`,
  `create index usage_record_project_idx on usage_record (project_id, id)`,
  `create index usage_record_at_idx on usage_record (at)`,
  `create table usage_hour (project_id text not null, hour bigint not null, model text not null, key_id text not null,
    user_id text not null, worker_id text not null, upstream text not null, outcome text not null, calls bigint not null,
    estimated_calls bigint not null, input_tokens bigint not null, cached_input_tokens bigint not null,
    output_tokens bigint not null, reasoning_tokens bigint not null, cost bigint not null,
    primary key (project_id, hour, model, key_id, user_id, worker_id, upstream, outcome))`,
  `create index usage_hour_hour_idx on usage_hour (hour)`,
];
