import { type Kysely, sql } from "kysely";

/** Secrets of agents rest as those of nodes do. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}

const STATEMENTS: readonly string[] = [
  `alter table node_secret rename column node_id to owner_id`,
  `create table agent_secret (
    owner_id text not null references agent (id) on delete cascade,
    name text not null,
    version bigint not null,
    sealed_by text not null,
    sealed text not null,
    sealed_to text,
    provider_key bigint not null,
    deleted bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    primary key (owner_id, name)
  )`,
];
