import { type Kysely, sql } from "kysely";

/** The machines that are rented for nodes, and how far each of them is. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}

const STATEMENTS: readonly string[] = [
  `create table machine (
    node_id text primary key references node (id) on delete cascade,
    project_id text not null,
    provider text not null,
    type text not null,
    name text not null,
    step text not null,
    locations text not null,
    machine_id text,
    sealed_token text,
    sealed_bootstrap text,
    bootstrap_expires_at bigint,
    attempted_at bigint,
    deadline_at bigint not null
  )`,
  `create index machine_step on machine (step)`,
  `create index machine_project on machine (project_id)`,
];
