import { type Kysely, sql } from "kysely";

/** Which daemon version nodes are to run, by node, project or for all; and how their updates go. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}

const STATEMENTS: readonly string[] = [
  `create table desired_daemon (
    id text primary key,
    project_id text references project (id) on delete cascade,
    node_id text references node (id) on delete cascade,
    version text not null,
    requested_at bigint not null
  )`,
  `create index desired_daemon_project on desired_daemon (project_id)`,
  `create index desired_daemon_node on desired_daemon (node_id)`,
  `alter table node add column daemon_update text`,
];
