/**
 * The closed list of error codes. Services throw `DomainError`; only the control plane's
 * `http/error-response.ts` knows which HTTP status a code becomes. `docs/errors.md` is generated from here.
 */

export type ErrorType =
  | "invalid_request_error"
  | "authentication_error"
  | "billing_error"
  | "permission_error"
  | "not_found_error"
  | "conflict_error"
  | "rate_limit_error"
  | "server_error"
  | "upstream_error"
  | "unavailable_error";

interface CodeFacts {
  readonly type: ErrorType;
  /** Whether the same request may succeed later without a change. */
  readonly retry: boolean;
  readonly meaning: string;
}

const code = (type: ErrorType, retry: boolean, meaning: string): CodeFacts => ({ type, retry, meaning });

export const ERROR_CODES = {
  invalid_request: code("invalid_request_error", false, "The input is wrong; `param` names the field."),
  missing_project_header: code("invalid_request_error", false, "Name the project: header `Service-Project-Id`."),
  malformed_json: code("invalid_request_error", false, "The body is not valid JSON."),
  previous_response_not_found: code(
    "invalid_request_error",
    false,
    "No response is stored under this `previous_response_id`; send the whole history instead.",
  ),
  method_not_allowed: code("invalid_request_error", false, "The path exists, but not with this method."),
  request_timeout: code("invalid_request_error", true, "The request did not arrive whole in time."),
  request_too_large: code("invalid_request_error", false, "The body is over the stated limit."),
  unsupported_media_type: code("invalid_request_error", false, "Send `content-type: application/json`."),
  headers_too_large: code("invalid_request_error", false, "The request's headers are over the limit."),
  provider_token_invalid: code(
    "invalid_request_error",
    false,
    "The machine provider does not know this `providerToken`: it is wrong, or was revoked.",
  ),
  provider_token_read_only: code(
    "invalid_request_error",
    false,
    "The `providerToken` may only read; renting machines takes one that may write.",
  ),
  provider_token_wrong_project: code(
    "invalid_request_error",
    false,
    "The `providerToken` is good, but of another of the provider's projects than the node's machine.",
  ),
  invalid_credential: code(
    "authentication_error",
    false,
    "The credential is missing, malformed, unknown, revoked, or of another host.",
  ),
  expired_credential: code("authentication_error", false, "The credential was good and has run out; get a new one."),
  node_deleted: code(
    "authentication_error",
    false,
    "The node has been deleted. Its daemon takes down what it ran for it, and ends.",
  ),
  insufficient_balance: code("billing_error", false, "The project's balance does not cover the call."),
  key_budget_exceeded: code("billing_error", false, "The key's budget does not cover the call."),
  agent_budget_exceeded: code("billing_error", false, "The agent's budget does not cover the call."),
  held_by_running_calls: code(
    "billing_error",
    true,
    "The money is there, but set aside for calls that still run; try again when they have ended.",
  ),
  permission_denied: code("permission_error", false, "The caller is known, but may not do this."),
  model_not_allowed: code("permission_error", false, "The key's or the agent's list of models does not name this one."),
  not_found: code("not_found_error", false, "There is no such thing, or it is not the caller's to see."),
  model_not_found: code("not_found_error", false, "No such model in this project."),
  session_not_found: code("not_found_error", false, "There is no such chat session of this user in this project."),
  already_exists: code("conflict_error", false, "Something with this name or id is there already."),
  idempotency_mismatch: code(
    "conflict_error",
    false,
    "This `Idempotency-Key` was used with another body; use a new key for a new call.",
  ),
  idempotency_in_progress: code(
    "conflict_error",
    true,
    "The call with this `Idempotency-Key` still runs; `retry-after` tells when its repeat may be answered.",
  ),
  last_owner: code(
    "conflict_error",
    false,
    "A project keeps at least one owner: make somebody else an owner first, or delete the project.",
  ),
  project_deleting: code(
    "conflict_error",
    false,
    "The project is being deleted: nothing in it can be changed any more.",
  ),
  session_busy: code(
    "conflict_error",
    true,
    "Another turn of this chat session still runs; `retry-after` tells when to send this one again.",
  ),
  node_not_enrolled: code("conflict_error", false, "The node's daemon has not enrolled yet."),
  node_out_of_service: code("conflict_error", false, "The node is draining or drained; resume it first."),
  node_unreachable: code("conflict_error", false, "The agent's node does not answer, and may still run it."),
  daemon_too_old: code("conflict_error", false, "The node's daemon is too old to run agents; update it first."),
  agent_deleting: code("conflict_error", false, "The agent is being deleted."),
  missing_secrets: code(
    "conflict_error",
    false,
    "The agent lacks secrets that it or its connectors need: set each one that is named, then start it.",
  ),
  bootstrap_token_used: code("conflict_error", false, "Another daemon has enrolled with this bootstrap token."),
  rate_limit_exceeded: code(
    "rate_limit_error",
    true,
    "Too many calls or attempts; `retry-after` tells when the next may come.",
  ),
  internal: code("server_error", true, "Fairlead's own fault; the log has the request id."),
  upstream_failed: code("upstream_error", true, "The upstream could not be reached or broke off."),
  upstream_rejected_credentials: code(
    "upstream_error",
    false,
    "The upstream refused the credential or account that this platform has there; its settings are at fault.",
  ),
  upstream_timeout: code("upstream_error", true, "The upstream stayed silent for too long."),
  not_configured: code("unavailable_error", false, "A setting that this call needs is missing."),
  unavailable: code("unavailable_error", true, "Fairlead cannot answer this just now."),
  no_running_engine: code("unavailable_error", true, "The node is known, but its engine is not running."),
  overloaded: code("unavailable_error", true, "Too many calls are in flight; try again shortly."),
} as const satisfies Record<string, CodeFacts>;

export type ErrorCode = keyof typeof ERROR_CODES;

export interface ErrorDetails {
  /** The field at fault as a path (`messages[0].role`), a header's name, or null. */
  readonly param?: string | undefined;
  readonly retryAfterSeconds?: number | undefined;
  /** This very request will never succeed, whatever others of its code do. */
  readonly final?: boolean | undefined;
  /** The limit that was hit; told in `x-ratelimit-*`. */
  readonly rateLimit?: RateLimitState | undefined;
  /** What is missing, for programs. */
  readonly money?: MoneyState | undefined;
  /** What is to be set, for programs. */
  readonly missingSecrets?: readonly MissingSecret[] | undefined;
  /** Whose refusal it is; by default a code says so itself. */
  readonly source?: ErrorSource | undefined;
  /** For the log only; never leaves the server. */
  readonly note?: string | undefined;
  readonly cause?: unknown;
}

/** `provider`: an upstream, be it a node's engine. */
export type ErrorSource = "fairlead" | "provider";

/** Of a refusal for money. */
export interface MoneyState {
  /** What the call would have to set aside, or to set aside besides what it has. */
  readonly neededNanoDollars: number;
  /** What it could set aside: of the balance, or of the key's budget. */
  readonly leftNanoDollars: number;
  /** What running calls hold of it: that comes back, less their costs. */
  readonly heldNanoDollars: number;
  /** When the budget starts anew, in RFC 3339; null: never by itself. */
  readonly resetsAt: string | null;
}

/** A secret without which an agent does not start. */
export interface MissingSecret {
  readonly name: string;
  /** The connector that needs it; null: the agent's guest or config. */
  readonly connectorSlug: string | null;
  /** It was set, and its node cannot open it. */
  readonly stale: boolean;
}

export interface RateLimitState {
  readonly limit: number;
  readonly remaining: number;
  readonly resetSeconds: number;
}

/** An error that a caller may be told of. `message` is public: it says what is wrong and what to do. */
export class DomainError extends Error {
  override readonly name = "DomainError";
  readonly code: ErrorCode;
  readonly param: string | null;
  readonly retryAfterSeconds: number | undefined;
  readonly final: boolean;
  readonly rateLimit: RateLimitState | undefined;
  readonly money: MoneyState | undefined;
  readonly missingSecrets: readonly MissingSecret[] | undefined;
  readonly source: ErrorSource;
  readonly note: string | undefined;

  constructor(errorCode: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = errorCode;
    this.param = details.param ?? null;
    this.retryAfterSeconds = details.retryAfterSeconds;
    this.final = details.final ?? false;
    this.rateLimit = details.rateLimit;
    this.money = details.money;
    this.missingSecrets = details.missingSecrets;
    this.source = details.source ?? (ERROR_CODES[errorCode].type === "upstream_error" ? "provider" : "fairlead");
    this.note = details.note;
  }
}

/** The body of every error answer on both hosts. */
export interface ErrorBody {
  readonly error: {
    readonly message: string;
    readonly type: ErrorType;
    readonly code: ErrorCode;
    readonly param: string | null;
    readonly source: ErrorSource;
    readonly requestId: string;
    /** Of a 402. */
    readonly money?: MoneyState;
    /** Of `missing_secrets`. */
    readonly missingSecrets?: readonly MissingSecret[];
  };
}

export function errorBody(error: DomainError, requestId: string): ErrorBody {
  const { type } = ERROR_CODES[error.code];
  const { message, code: errorCode, param, source, money, missingSecrets } = error;
  const more = { ...(money ? { money } : {}), ...(missingSecrets ? { missingSecrets } : {}) };
  return { error: { message, type, code: errorCode, param, source, requestId, ...more } };
}
