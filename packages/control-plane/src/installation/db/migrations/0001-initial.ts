import { type Kysely, sql } from "kysely";
import { dialectOf } from "../dialect.ts";

/** The first schema. Columns are described in `schema.ts` and the files next to it. */
export async function up(db: Kysely<unknown>): Promise<void> {
  const date = dialectOf(db) === "sqlite" ? "date" : "text";
  const areas = [signIn(date), oauthServer(date), PROJECTS, NODES, AGENTS, MONEY, USAGE, CHAT, RECORDS];
  for (const statement of areas.flat()) await sql.raw(statement).execute(db);
}

/**
 * As in better-auth 1.7 (`schema.ts` says why). On SQLite it recognizes date columns only if they are declared `date`;
 * the values are ISO text, which is `text` on PostgreSQL.
 */
const signIn = (date: string): readonly string[] => [
  `create table "user" ("id" text not null primary key, "name" text not null, "email" text not null unique, "emailVerified" integer not null,
    "image" text, "createdAt" ${date} not null, "updatedAt" ${date} not null, "platformAdmin" integer)`,
  `create table "session" ("id" text not null primary key, "expiresAt" ${date} not null, "token" text not null unique, "createdAt" ${date} not null,
    "updatedAt" ${date} not null, "ipAddress" text, "userAgent" text, "userId" text not null references "user" ("id") on delete cascade)`,
  `create index "session_userId_idx" on "session" ("userId")`,
  `create table "account" ("id" text not null primary key, "accountId" text not null, "providerId" text not null,
    "userId" text not null references "user" ("id") on delete cascade, "accessToken" text, "refreshToken" text, "idToken" text,
    "accessTokenExpiresAt" ${date}, "refreshTokenExpiresAt" ${date}, "scope" text, "password" text, "createdAt" ${date} not null, "updatedAt" ${date} not null)`,
  `create index "account_userId_idx" on "account" ("userId")`,
  // An account of a provider belongs to one user, even with concurrent requests.
  `create unique index "account_provider_uidx" on "account" ("providerId", "accountId")`,
  `create table "verification" ("id" text not null primary key, "identifier" text not null, "value" text not null, "expiresAt" ${date} not null,
    "createdAt" ${date} not null, "updatedAt" ${date} not null)`,
  `create index "verification_identifier_idx" on "verification" ("identifier")`,
];

/** As in @better-auth/oauth-provider 1.7. */
const oauthServer = (date: string): readonly string[] => [
  `create table "jwks" ("id" text not null primary key, "publicKey" text not null, "privateKey" text not null, "createdAt" ${date} not null,
    "expiresAt" ${date}, "alg" text, "crv" text)`,
  `create table "oauthClient" ("id" text not null primary key, "clientId" text not null unique, "clientSecret" text, "clientDiscoveryId" text,
    "disabled" integer, "skipConsent" integer, "enableEndSession" integer, "subjectType" text, "scopes" text, "clientCredentialsScopes" text,
    "userId" text references "user" ("id") on delete cascade, "createdAt" ${date}, "updatedAt" ${date}, "name" text, "uri" text, "icon" text,
    "contacts" text, "tos" text, "policy" text, "softwareId" text, "softwareVersion" text, "softwareStatement" text, "redirectUris" text not null,
    "postLogoutRedirectUris" text, "backchannelLogoutUri" text, "backchannelLogoutSessionRequired" integer, "tokenEndpointAuthMethod" text,
    "applicationType" text, "jwks" text, "jwksUri" text, "grantTypes" text, "responseTypes" text, "requirePKCE" integer,
    "dpopBoundAccessTokens" integer, "referenceId" text, "metadata" text)`,
  `create index "oauthClient_userId_idx" on "oauthClient" ("userId")`,
  `create table "oauthResource" ("id" text not null primary key, "identifier" text not null unique, "name" text not null, "accessTokenTtl" integer,
    "refreshTokenTtl" integer, "signingAlgorithm" text, "signingKeyId" text, "allowedScopes" text, "customClaims" text,
    "dpopBoundAccessTokensRequired" integer, "disabled" integer, "createdAt" ${date}, "updatedAt" ${date}, "policyVersion" integer, "metadata" text)`,
  `create table "oauthClientResource" ("id" text not null primary key,
    "clientId" text not null references "oauthClient" ("clientId") on delete cascade,
    "resourceId" text not null references "oauthResource" ("identifier") on delete cascade, "metadata" text, "createdAt" ${date})`,
  `create index "oauthClientResource_clientId_idx" on "oauthClientResource" ("clientId")`,
  `create index "oauthClientResource_resourceId_idx" on "oauthClientResource" ("resourceId")`,
  `create unique index "oauthClientResource_clientId_resourceId_uidx" on "oauthClientResource" ("clientId", "resourceId")`,
  `create table "oauthRefreshToken" ("id" text not null primary key, "token" text not null unique,
    "clientId" text not null references "oauthClient" ("clientId") on delete cascade,
    "sessionId" text references "session" ("id") on delete set null, "userId" text not null references "user" ("id") on delete cascade,
    "referenceId" text, "authorizationCodeId" text, "resources" text, "requestedUserInfoClaims" text, "expiresAt" ${date} not null,
    "createdAt" ${date} not null, "revoked" ${date}, "rotatedAt" ${date}, "rotationReplayResponse" text, "rotationReplayExpiresAt" ${date},
    "authTime" ${date}, "confirmation" text, "scopes" text not null)`,
  `create index "oauthRefreshToken_clientId_idx" on "oauthRefreshToken" ("clientId")`,
  `create index "oauthRefreshToken_sessionId_idx" on "oauthRefreshToken" ("sessionId")`,
  `create index "oauthRefreshToken_userId_idx" on "oauthRefreshToken" ("userId")`,
  `create index "oauthRefreshToken_authorizationCodeId_idx" on "oauthRefreshToken" ("authorizationCodeId")`,
  `create table "oauthAccessToken" ("id" text not null primary key, "token" text not null unique,
    "clientId" text not null references "oauthClient" ("clientId") on delete cascade,
    "sessionId" text references "session" ("id") on delete set null, "userId" text references "user" ("id") on delete cascade,
    "referenceId" text, "authorizationCodeId" text, "resources" text, "requestedUserInfoClaims" text,
    "refreshId" text references "oauthRefreshToken" ("id") on delete cascade, "expiresAt" ${date} not null, "createdAt" ${date} not null,
    "revoked" ${date}, "confirmation" text, "scopes" text not null)`,
  `create index "oauthAccessToken_clientId_idx" on "oauthAccessToken" ("clientId")`,
  `create index "oauthAccessToken_sessionId_idx" on "oauthAccessToken" ("sessionId")`,
  `create index "oauthAccessToken_userId_idx" on "oauthAccessToken" ("userId")`,
  `create index "oauthAccessToken_authorizationCodeId_idx" on "oauthAccessToken" ("authorizationCodeId")`,
  `create index "oauthAccessToken_refreshId_idx" on "oauthAccessToken" ("refreshId")`,
  `create table "oauthConsent" ("id" text not null primary key, "clientId" text not null references "oauthClient" ("clientId") on delete cascade,
    "userId" text references "user" ("id") on delete cascade, "referenceId" text, "resources" text, "requestedUserInfoClaims" text,
    "scopes" text not null, "createdAt" ${date} not null, "updatedAt" ${date} not null)`,
  `create index "oauthConsent_clientId_idx" on "oauthConsent" ("clientId")`,
  `create index "oauthConsent_userId_idx" on "oauthConsent" ("userId")`,
  `create table "oauthClientAssertion" ("id" text not null primary key, "expiresAt" ${date} not null)`,
  `create table "deviceCode" ("id" text not null primary key, "deviceCode" text not null, "userCode" text not null, "userId" text,
    "expiresAt" ${date} not null, "status" text not null, "lastPolledAt" ${date}, "pollingInterval" integer, "clientId" text, "scope" text,
    "resources" text, "oauthClientId" text)`,
  `create unique index "deviceCode_deviceCode_uidx" on "deviceCode" ("deviceCode")`,
  `create unique index "deviceCode_userCode_uidx" on "deviceCode" ("userCode")`,
];

/** Projects, their members and their models. */
const PROJECTS: readonly string[] = [
  `create table project (id text primary key, user_id text not null references "user" ("id"), name text not null,
    created_at bigint not null, updated_at bigint not null, deleting_since bigint, default_model text)`,
  // Finds the projects whose deletion resumes after a restart.
  `create index project_deleting_idx on project (deleting_since) where deleting_since is not null`,
  `create table project_limits (project_id text not null primary key references project (id) on delete cascade, requests_per_minute bigint,
    tokens_per_minute bigint, parallel_calls bigint)`,
  `create table member (project_id text not null references project (id) on delete cascade, user_id text not null references "user" ("id") on delete cascade,
    role text not null, created_at bigint not null, primary key (project_id, user_id))`,
  `create index member_user_idx on member (user_id)`,
  // Set-up, reset and invitation links, one per subject.
  `create table one_time_link (id text primary key, purpose text not null, subject text not null unique, token_hash text not null unique, email text,
    user_id text references "user" ("id") on delete cascade, project_id text references project (id) on delete cascade, role text,
    created_by text, created_at bigint not null, expires_at bigint not null, used_by text, used_at bigint, revoked_at bigint)`,
  `create index one_time_link_project_idx on one_time_link (project_id, id)`,
  `create index one_time_link_user_idx on one_time_link (user_id)`,
  `create index one_time_link_expires_idx on one_time_link (expires_at)`,
  `create table project_key (id text primary key, project_id text not null references project (id) on delete cascade, user_id text not null,
    name text not null, public_id text not null unique, secret_hash text not null unique, enabled integer not null, expires_at bigint, created_at bigint not null,
    limits text not null default '{}', last_used_at bigint, previous_public_id text, previous_secret_hash text, previous_ends_at bigint,
    previous_last_used_at bigint)`,
  `create index project_key_project_idx on project_key (project_id)`,
  `create unique index project_key_previous_secret_idx on project_key (previous_secret_hash)`,
  `create table provider (project_id text not null references project (id) on delete cascade, name text not null, user_id text not null,
    base_url text not null, settings text not null, sealed_credential text, created_at bigint not null, updated_at bigint not null,
    primary key (project_id, name))`,
  `create table model_alias (project_id text not null references project (id) on delete cascade, name text not null, targets text not null,
    created_at bigint not null, updated_at bigint not null, primary key (project_id, name))`,
];

const NODES: readonly string[] = [
  `create table node (id text primary key, project_id text not null references project (id), user_id text not null, name text not null,
    identifier text not null, plan_id text not null, status text not null, status_message text not null, status_since bigint not null,
    public_ip text not null, operating_system text not null, direct_secrets integer not null, connectors text not null, engine_config text not null,
    signing_key text, sealing_key text, enrolled_at bigint, daemon_version text not null, last_seen_at bigint, conditions text not null default '[]',
    drain_until bigint, restarts integer not null default 0, daemon_update text, created_at bigint not null, unique (project_id, identifier))`,
  // So that a daemon that still uses its key learns that the node was deleted.
  `create table deleted_node (id text primary key, signing_key text not null, deleted_at bigint not null)`,
  `create table node_desired (node_id text primary key references node (id) on delete cascade, generation bigint not null, workloads text not null)`,
  `create table node_report (node_id text primary key references node (id) on delete cascade, epoch text not null, generation bigint not null,
    reports text not null, worker_image_digest text not null, last_version text not null, reported_at bigint not null)`,
  `create table node_event (id text primary key, node_id text not null references node (id) on delete cascade, source_id text unique, at bigint not null, kind text not null,
    status text, message text not null)`,
  `create index node_event_node_idx on node_event (node_id, id)`,
  `create index node_event_at_idx on node_event (at)`,
  `create table bootstrap_token (id text primary key, node_id text not null references node (id) on delete cascade, token_hash text not null unique,
    expires_at bigint not null, voided_at bigint, used_by text, used_at bigint, created_at bigint not null)`,
  `create index bootstrap_token_node_idx on bootstrap_token (node_id)`,
  `create table node_secret (owner_id text not null references node (id) on delete cascade, name text not null, version bigint not null default 1,
    sealed_by text not null, sealed text not null, sealed_to text, provider_key bigint not null default 0, deleted bigint not null default 0,
    created_at bigint not null, updated_at bigint not null, primary key (owner_id, name))`,
  `create table desired_daemon (id text primary key, project_id text references project (id) on delete cascade,
    node_id text references node (id) on delete cascade, version text not null, requested_at bigint not null)`,
  `create index desired_daemon_project on desired_daemon (project_id)`,
  `create index desired_daemon_node on desired_daemon (node_id)`,
  // Rented machines of nodes and their progress.
  `create table machine (node_id text primary key references node (id) on delete cascade, project_id text not null, provider text not null,
    type text not null, name text not null, step text not null, locations text not null, machine_id text, sealed_token text,
    sealed_bootstrap text, bootstrap_expires_at bigint, attempted_at bigint, deadline_at bigint not null)`,
  `create index machine_step on machine (step)`,
  `create index machine_project on machine (project_id)`,
];

/** Wanted state, placement and observed state of agents. */
const AGENTS: readonly string[] = [
  `create table agent (id text primary key, project_id text not null references project (id) on delete cascade, user_id text not null,
    name text not null, guest text not null, node_id text not null, connector_slugs text not null, config text not null, limits text not null,
    wanted integer not null, run bigint not null, placed_node_id text, placed_generation bigint, release_generation bigint,
    lifecycle_state text not null, lifecycle_since bigint not null, observed text not null, created_at bigint not null, updated_at bigint not null)`,
  `create index agent_project_idx on agent (project_id, id)`,
  `create index agent_node_idx on agent (node_id)`,
  `create index agent_placed_idx on agent (placed_node_id) where placed_node_id is not null`,
  `create table agent_event (id text primary key, agent_id text not null references agent (id) on delete cascade, source_id text unique,
    at bigint not null, kind text not null, lifecycle_state text, message text not null)`,
  `create index agent_event_agent_idx on agent_event (agent_id, id)`,
  `create index agent_event_age_idx on agent_event (at)`,
  `create table agent_secret (owner_id text not null references agent (id) on delete cascade, name text not null, version bigint not null,
    sealed_by text not null, sealed text not null, sealed_to text, provider_key bigint not null, deleted bigint not null,
    created_at bigint not null, updated_at bigint not null, primary key (owner_id, name))`,
];

/** Amounts are nano-dollars. `project_balance` keeps the sum of each project's ledger. */
const MONEY: readonly string[] = [
  `create table ledger_entry (id text not null primary key, project_id text not null, at bigint not null, kind text not null,
    amount bigint not null, call_id text, spender_id text, note text not null)`,
  `create index ledger_entry_project_idx on ledger_entry (project_id, id)`,
  // No call is charged twice.
  `create unique index ledger_entry_settle_idx on ledger_entry (call_id) where kind = 'settle'`,
  `create table project_balance (project_id text not null primary key, balance bigint not null check (balance >= 0))`,
  `create table open_hold (call_id text not null primary key, project_id text not null, spender_id text, held bigint not null,
    delivered bigint not null, opened_at bigint not null, owner text not null default '')`,
  `create table billing_batch (owner text not null, number bigint not null, primary key (owner, number))`,
  `create table spending (spender_id text not null, period text not null, spent bigint not null, primary key (spender_id, period))`,
];

/**
 * One row per call and sums per hour, written in the same transactions. Both outlive the projects, keys and users they
 * name: a late row must not fail its whole batch.
 */
const USAGE: readonly string[] = [
  `create table usage_record (id text not null primary key, project_id text not null, request_id text not null, at bigint not null,
    key_id text, user_id text, agent_id text, model text, upstream text, dialect text not null, stream integer not null,
    outcome text not null, status integer, input_tokens bigint not null, cached_input_tokens bigint not null,
    output_tokens bigint not null, reasoning_tokens bigint not null, estimated integer not null, cost bigint not null,
    attempts integer not null, overhead_us bigint, first_token_ms bigint, duration_ms bigint not null)`,
  `create index usage_record_project_idx on usage_record (project_id, id)`,
  `create index usage_record_at_idx on usage_record (at)`,
  `create table usage_hour (project_id text not null, hour bigint not null, model text not null, key_id text not null,
    user_id text not null, agent_id text not null, upstream text not null, outcome text not null, calls bigint not null,
    estimated_calls bigint not null, input_tokens bigint not null, cached_input_tokens bigint not null,
    output_tokens bigint not null, reasoning_tokens bigint not null, cost bigint not null,
    primary key (project_id, hour, model, key_id, user_id, agent_id, upstream, outcome))`,
  `create index usage_hour_hour_idx on usage_hour (hour)`,
];

/** Large columns come last in a row, so that the columns before them are read without them (decisions/0021). */
const CHAT: readonly string[] = [
  `create table chat_session (id text not null primary key, project_id text not null references project (id) on delete cascade,
    user_id text not null, opened_from text, model text, message_count bigint not null, item_count bigint not null,
    next_position bigint not null, last_turn_id text, created_at bigint not null, updated_at bigint not null, deleted_at bigint,
    titled_by_person integer not null, title text not null, search_title text not null, metadata text not null)`,
  `create index chat_session_list_idx on chat_session (project_id, user_id, updated_at, id)`,
  `create index chat_session_age_idx on chat_session (updated_at)`,
  `create index chat_session_opened_idx on chat_session (project_id, user_id, created_at)`,
  `create index chat_session_deleted_idx on chat_session (deleted_at) where deleted_at is not null`,
  `create table chat_turn (id text not null primary key, session_id text not null references chat_session (id) on delete cascade,
    project_id text not null, user_id text not null, kind text not null, status text not null, owner text not null default '', why text not null,
    dialect text not null, model text not null, question_hash text not null, request_hash text not null, idempotency_key text,
    first_position bigint not null, question_count bigint not null, answer_count bigint not null, began_at bigint not null,
    ended_at bigint, usage text, partial text, response text)`,
  `create index chat_turn_session_idx on chat_turn (session_id)`,
  `create unique index chat_turn_open_idx on chat_turn (session_id) where status = 'open'`,
  `create unique index chat_turn_key_idx on chat_turn (project_id, user_id, idempotency_key) where idempotency_key is not null`,
  `create index chat_turn_answer_idx on chat_turn (began_at) where idempotency_key is not null`,
  `create table chat_item (session_id text not null references chat_session (id) on delete cascade, position bigint not null,
    id text not null, turn_id text not null, status text not null, type text not null, role text, tokens bigint not null, bytes bigint not null,
    created_at bigint not null, usage text, search_text text, item text not null, primary key (session_id, position))`,
  `create unique index chat_item_id_idx on chat_item (session_id, id)`,
];

/** Data about the installation and its history. */
const RECORDS: readonly string[] = [
  `create table installation (single integer primary key check (single = 1), id text not null, epoch text not null, created_at bigint not null)`,
  `create table signing_key (id text primary key, public_jwk text not null, sealed_jwk text not null, master_key_id text not null,
    created_at bigint not null, retired_at bigint)`,
  // No foreign keys in either direction: rows outlive what they describe.
  `create table audit_event (id text primary key, at bigint not null, action text not null, actor_type text not null, actor_id text not null,
    actor_email text, project_id text, resource_type text not null, resource_id text not null, resource_name text not null,
    address text not null, request_id text not null, detail text not null)`,
  `create index audit_event_project_idx on audit_event (project_id, id)`,
  `create index audit_event_at_idx on audit_event (at)`,
  // Responses to creates, kept for repeated requests. The project is "" if the request names none.
  `create table idempotency_record (user_id text not null, project_id text not null, route text not null, key text not null,
    fingerprint text not null, resource_id text not null, answer text, expires_at bigint not null, primary key (user_id, project_id, route, key))`,
  `create index idempotency_record_expires_idx on idempotency_record (expires_at)`,
  // Responses of the inference host, kept for the same reason.
  `create table kept_answer (project_id text not null references project (id) on delete cascade, caller_id text not null, key text not null,
    fingerprint text not null, sealed text, expires_at bigint not null, primary key (project_id, caller_id, key))`,
  `create index kept_answer_expiry_idx on kept_answer (expires_at)`,
];
