import { type Kysely, sql } from "kysely";

/** Set-up, reset and invitation links, one for each subject. They end with the project or user that they were made for. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}

const STATEMENTS: readonly string[] = [
  `create table one_time_link (id text primary key, purpose text not null, subject text not null unique, token_hash text not null unique, email text,
    user_id text references "user" ("id") on delete cascade, project_id text references project (id) on delete cascade, role text,
    created_by text, created_at bigint not null, expires_at bigint not null, used_by text, used_at bigint, revoked_at bigint)`,
  `create index one_time_link_project_idx on one_time_link (project_id, id)`,
  `create index one_time_link_user_idx on one_time_link (user_id)`,
  `create index one_time_link_expires_idx on one_time_link (expires_at)`,
];
