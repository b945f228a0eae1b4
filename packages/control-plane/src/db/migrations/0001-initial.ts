import { type Kysely, sql } from "kysely";
import { dialectOf } from "../dialect.ts";

/**
 * The first schema. The sign-in tables stand as better-auth 1.7 lays them out (`schema.ts` says why): it takes a column of
 * dates on SQLite for its own only when the column is declared `date`; what rests there is ISO text, which on PostgreSQL is `text`.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  const statements = statementsFor(dialectOf(db) === "sqlite" ? "date" : "text");
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statementsFor = (date: string): readonly string[] => [
  `create table installation (single integer primary key check (single = 1), id text not null, epoch text not null, created_at bigint not null)`,
  `create table signing_key (id text primary key, public_jwk text not null, sealed_jwk text not null, master_key_id text not null,
    created_at bigint not null, retired_at bigint)`,

  `create table "user" ("id" text not null primary key, "name" text not null, "email" text not null unique, "emailVerified" integer not null,
    "image" text, "createdAt" ${date} not null, "updatedAt" ${date} not null, "platformAdmin" integer)`,
  `create table "session" ("id" text not null primary key, "expiresAt" ${date} not null, "token" text not null unique, "createdAt" ${date} not null,
    "updatedAt" ${date} not null, "ipAddress" text, "userAgent" text, "userId" text not null references "user" ("id") on delete cascade)`,
  `create table "account" ("id" text not null primary key, "accountId" text not null, "providerId" text not null,
    "userId" text not null references "user" ("id") on delete cascade, "accessToken" text, "refreshToken" text, "idToken" text,
    "accessTokenExpiresAt" ${date}, "refreshTokenExpiresAt" ${date}, "scope" text, "password" text, "createdAt" ${date} not null, "updatedAt" ${date} not null)`,
  `create table "verification" ("id" text not null primary key, "identifier" text not null, "value" text not null, "expiresAt" ${date} not null,
    "createdAt" ${date} not null, "updatedAt" ${date} not null)`,
  `create index "session_userId_idx" on "session" ("userId")`,
  `create index "account_userId_idx" on "account" ("userId")`,
  `create index "verification_identifier_idx" on "verification" ("identifier")`,

  `create table project (id text primary key, user_id text not null references "user" ("id"), name text not null,
    created_at bigint not null, updated_at bigint not null)`,
  `create table member (project_id text not null references project (id) on delete cascade, user_id text not null references "user" ("id") on delete cascade,
    role text not null, created_at bigint not null, primary key (project_id, user_id))`,
  `create index member_user_idx on member (user_id)`,
  `create table project_key (id text primary key, project_id text not null references project (id) on delete cascade, user_id text not null,
    name text not null, public_id text not null unique, secret_hash text not null unique, enabled integer not null, expires_at bigint, created_at bigint not null)`,
  `create index project_key_project_idx on project_key (project_id)`,

  `create table node (id text primary key, project_id text not null references project (id), user_id text not null, name text not null,
    identifier text not null, plan_id text not null, status text not null, status_message text not null, status_since bigint not null,
    public_ip text not null, operating_system text not null, direct_secrets integer not null, connectors text not null, engine_config text not null,
    signing_key text, sealing_key text, enrolled_at bigint, daemon_version text not null, last_seen_at bigint, created_at bigint not null,
    unique (project_id, identifier))`,
  `create table node_desired (node_id text primary key references node (id) on delete cascade, generation bigint not null, workloads text not null)`,
  `create table node_report (node_id text primary key references node (id) on delete cascade, epoch text not null, generation bigint not null,
    reports text not null, worker_image_digest text not null, last_version text not null, reported_at bigint not null)`,
  `create table node_event (id text primary key, node_id text not null references node (id) on delete cascade, source_id text unique, at bigint not null, kind text not null,
    status text, message text not null)`,
  `create index node_event_node_idx on node_event (node_id, id)`,
  `create index node_event_at_idx on node_event (at)`,
  `create table bootstrap_token (id text primary key, node_id text not null references node (id) on delete cascade, token_hash text not null unique,
    expires_at bigint not null, voided_at bigint, used_by text, used_at bigint, created_at bigint not null)`,
  `create table node_secret (node_id text not null references node (id) on delete cascade, name text not null, sealed_by text not null, sealed text not null,
    created_at bigint not null, updated_at bigint not null, primary key (node_id, name))`,
  `create index bootstrap_token_node_idx on bootstrap_token (node_id)`,
];
