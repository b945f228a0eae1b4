import { type Kysely, sql } from "kysely";

/** The audit log. Nothing refers to its rows and they refer to nothing: they outlive what they tell of. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}

const STATEMENTS: readonly string[] = [
  `create table audit_event (id text primary key, at bigint not null, action text not null, actor_type text not null, actor_id text not null,
    actor_email text, project_id text, resource_type text not null, resource_id text not null, resource_name text not null,
    address text not null, request_id text not null, detail text not null)`,
  `create index audit_event_project_idx on audit_event (project_id, id)`,
  `create index audit_event_at_idx on audit_event (at)`,
];
