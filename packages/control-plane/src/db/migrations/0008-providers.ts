import { type Kysely, sql } from "kysely";

/** A project's own providers and aliases, and the model that its calls are for when they name none. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}

const STATEMENTS: readonly string[] = [
  `create table provider (project_id text not null references project (id) on delete cascade, name text not null, user_id text not null,
    base_url text not null, settings text not null, sealed_credential text, created_at bigint not null, updated_at bigint not null,
    primary key (project_id, name))`,
  `create table model_alias (project_id text not null references project (id) on delete cascade, name text not null, targets text not null,
    created_at bigint not null, updated_at bigint not null, primary key (project_id, name))`,
  `alter table project add column default_model text`,
];
