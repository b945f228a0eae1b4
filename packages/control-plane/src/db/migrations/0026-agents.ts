import { type Kysely, sql } from "kysely";

/** Agents: what people want of each, where it is placed, and what was last seen of it; and their histories. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}

const STATEMENTS: readonly string[] = [
  `create table agent (
    id text primary key,
    project_id text not null references project (id) on delete cascade,
    user_id text not null,
    name text not null,
    guest text not null,
    node_id text not null,
    connector_slugs text not null,
    config text not null,
    limits text not null,
    wanted integer not null,
    run bigint not null,
    placed_node_id text,
    placed_generation bigint,
    release_generation bigint,
    lifecycle_state text not null,
    lifecycle_since bigint not null,
    observed text not null,
    created_at bigint not null,
    updated_at bigint not null
  )`,
  `create index agent_project_idx on agent (project_id, id)`,
  `create index agent_node_idx on agent (node_id)`,
  `create index agent_placed_idx on agent (placed_node_id) where placed_node_id is not null`,
  `create table agent_event (
    id text primary key,
    agent_id text not null references agent (id) on delete cascade,
    source_id text unique,
    at bigint not null,
    kind text not null,
    lifecycle_state text,
    message text not null
  )`,
  `create index agent_event_agent_idx on agent_event (agent_id, id)`,
  `create index agent_event_age_idx on agent_event (at)`,
];
