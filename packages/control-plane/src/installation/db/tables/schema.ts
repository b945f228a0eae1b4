import type { AgentEventTable, AgentTable } from "./agent-tables.ts";
import type { ChatItemTable, ChatSessionTable, ChatTurnTable } from "./chat-tables.ts";
import type {
  BillingBatchTable,
  LedgerEntryTable,
  OpenHoldTable,
  ProjectBalanceTable,
  SpendingTable,
  UsageHourTable,
  UsageRecordTable,
} from "./metering-tables.ts";
import type {
  BootstrapTokenTable,
  DaemonVersionTable,
  DeletedNodeTable,
  MachineTable,
  NodeDesiredTable,
  NodeEventTable,
  NodeReportTable,
  NodeTable,
} from "./node-tables.ts";
import type { SecretTable } from "./secret-tables.ts";

/**
 * Storage format of rows, the same on SQLite and PostgreSQL: text, integers (booleans are 0 or 1, times are Unix
 * milliseconds), JSON as text. The sign-in and OAuth tables follow better-auth (camelCase, ISO dates), so that it needs
 * no migration.
 */
export interface Database {
  installation: InstallationTable;
  signing_key: SigningKeyTable;
  user: UserTable;
  session: SessionTable;
  account: AccountTable;
  verification: VerificationTable;
  oauthClient: OAuthClientTable;
  oauthRefreshToken: OAuthRefreshTokenTable;
  deviceCode: DeviceCodeTable;
  project: ProjectTable;
  member: MemberTable;
  project_key: ProjectKeyTable;
  provider: ProviderTable;
  model_alias: ModelAliasTable;
  node: NodeTable;
  deleted_node: DeletedNodeTable;
  node_desired: NodeDesiredTable;
  node_report: NodeReportTable;
  desired_daemon: DaemonVersionTable;
  node_event: NodeEventTable;
  machine: MachineTable;
  bootstrap_token: BootstrapTokenTable;
  node_secret: SecretTable;
  agent: AgentTable;
  agent_event: AgentEventTable;
  agent_secret: SecretTable;
  idempotency_record: IdempotencyRecordTable;
  ledger_entry: LedgerEntryTable;
  project_balance: ProjectBalanceTable;
  open_hold: OpenHoldTable;
  billing_batch: BillingBatchTable;
  spending: SpendingTable;
  usage_record: UsageRecordTable;
  usage_hour: UsageHourTable;
  kept_answer: KeptAnswerTable;
  project_limits: ProjectLimitsTable;
  chat_session: ChatSessionTable;
  chat_turn: ChatTurnTable;
  chat_item: ChatItemTable;
  one_time_link: OneTimeLinkTable;
  audit_event: AuditEventTable;
}

/** One row: the installation's identity. The epoch changes when a backup is restored. */
export interface InstallationTable {
  /** Always 1 and unique, so that servers starting concurrently cannot create two installations. */
  single: number;
  id: string;
  epoch: string;
  created_at: number;
}

export interface SigningKeyTable {
  id: string;
  public_jwk: string;
  /** The private key, sealed by the master key. */
  sealed_jwk: string;
  master_key_id: string;
  created_at: number;
  /** When it stopped signing; it stays published until its last token expires. Null: it signs. */
  retired_at: number | null;
}

export interface UserTable {
  id: string;
  name: string;
  email: string;
  emailVerified: number;
  image: string | null;
  createdAt: string;
  updatedAt: string;
  platformAdmin: number | null;
}

export interface SessionTable {
  id: string;
  expiresAt: string;
  token: string;
  createdAt: string;
  updatedAt: string;
  ipAddress: string | null;
  userAgent: string | null;
  userId: string;
}

export interface AccountTable {
  id: string;
  accountId: string;
  providerId: string;
  userId: string;
  accessToken: string | null;
  refreshToken: string | null;
  idToken: string | null;
  accessTokenExpiresAt: string | null;
  refreshTokenExpiresAt: string | null;
  scope: string | null;
  password: string | null;
  createdAt: string;
  updatedAt: string;
}

export interface VerificationTable {
  id: string;
  identifier: string;
  value: string;
  expiresAt: string;
  createdAt: string;
  updatedAt: string;
}

/** The columns of better-auth's table that we use; lists are JSON. */
export interface OAuthClientTable {
  id: string;
  clientId: string;
  disabled: number | null;
  scopes: string | null;
  createdAt: string | null;
  updatedAt: string | null;
  name: string | null;
  redirectUris: string;
  tokenEndpointAuthMethod: string | null;
  applicationType: string | null;
  grantTypes: string | null;
  responseTypes: string | null;
  requirePKCE: number | null;
}

/** The columns that we use. All tokens of a family have the same session. */
export interface OAuthRefreshTokenTable {
  id: string;
  /** SHA-256 (hex) of the token. */
  token: string;
  clientId: string;
  /** Null once the session has ended. */
  sessionId: string | null;
  userId: string;
  expiresAt: string;
  /** When it was exchanged for the next one. */
  revoked: string | null;
}

export interface DeviceCodeTable {
  id: string;
  /** SHA-256 (hex) of the device code. */
  deviceCode: string;
  userCode: string;
  userId: string | null;
  expiresAt: string;
  status: string;
  lastPolledAt: string | null;
  clientId: string | null;
  scope: string | null;
}

export interface ProjectTable {
  id: string;
  /** The creator. Never changes; the current owners are in `member`. */
  user_id: string;
  name: string;
  created_at: number;
  updated_at: number;
  /** When deletion started; null unless the project is being deleted. */
  deleting_since: number | null;
  /** For calls that name no model; null: the server's default. */
  default_model: string | null;
}

export interface MemberTable {
  project_id: string;
  user_id: string;
  role: string;
  created_at: number;
}

export interface ProjectKeyTable {
  id: string;
  project_id: string;
  user_id: string;
  name: string;
  /** The public part, shown in logs and lists. */
  public_id: string;
  /** SHA-256 (hex) of the whole key. */
  secret_hash: string;
  enabled: number;
  expires_at: number | null;
  created_at: number;
  /** JSON; omitted fields are unlimited. */
  limits: string;
  last_used_at: number | null;
  /** All null, or the secret before the last rotation. Kept after it expires, so that its callers get a specific error. */
  previous_public_id: string | null;
  previous_secret_hash: string | null;
  previous_ends_at: number | null;
  previous_last_used_at: number | null;
}

/** A project's own provider. */
export interface ProviderTable {
  project_id: string;
  /** Shares one namespace with the project's node identifiers and aliases. */
  name: string;
  user_id: string;
  base_url: string;
  /** JSON. */
  settings: string;
  /** Sealed by the master key. */
  sealed_credential: string | null;
  created_at: number;
  updated_at: number;
}

/** A project's alias for an ordered list of models. */
export interface ModelAliasTable {
  project_id: string;
  name: string;
  /** JSON. */
  targets: string;
  created_at: number;
  updated_at: number;
}

/** The response to a create, returned again for repeats of the request. */
export interface IdempotencyRecordTable {
  user_id: string;
  /** "" if the request names no project. */
  project_id: string;
  route: string;
  key: string;
  /** SHA-256 (hex) of the body. */
  fingerprint: string;
  resource_id: string;
  /** JSON; null if it contained a secret, which is never stored. */
  answer: string | null;
  expires_at: number;
}

export interface OneTimeLinkTable {
  id: string;
  purpose: string;
  /** Purpose and target; a new link replaces the row of an earlier one. */
  subject: string;
  /** SHA-256 (hex) of the token. */
  token_hash: string;
  email: string | null;
  user_id: string | null;
  project_id: string | null;
  role: string | null;
  created_by: string | null;
  created_at: number;
  expires_at: number;
  used_by: string | null;
  used_at: number | null;
  revoked_at: number | null;
}

/** Who did what to which resource. Has no foreign keys, because it outlives what it describes. */
export interface AuditEventTable {
  id: string;
  at: number;
  action: string;
  actor_type: string;
  actor_id: string;
  /** The user's address at the time. */
  actor_email: string | null;
  project_id: string | null;
  resource_type: string;
  resource_id: string;
  resource_name: string;
  address: string;
  request_id: string;
  /** JSON. */
  detail: string;
}

/** The inference host's response to a call with an `Idempotency-Key`. */
export interface KeptAnswerTable {
  project_id: string;
  /** ID of a project key or worker. */
  caller_id: string;
  key: string;
  /** SHA-256 (hex) of the call. */
  fingerprint: string;
  /** Sealed by the master key; null if it was too long to keep. */
  sealed: string | null;
  expires_at: number;
}

/** The project's own limits; null: the server's. */
export interface ProjectLimitsTable {
  project_id: string;
  requests_per_minute: number | null;
  tokens_per_minute: number | null;
  parallel_calls: number | null;
}
