/**
 * The closed list of error codes. Services throw `DomainError`; only `http/error-response.ts` of the control plane maps codes to statuses.
 * `docs/errors.md` is generated from here.
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
  /** Whether the same request may succeed later. */
  readonly retry: boolean;
  readonly meaning: string;
}

const code = (type: ErrorType, retry: boolean, meaning: string): CodeFacts => ({ type, retry, meaning });

export const ERROR_CODES = {
  invalid_request: code("invalid_request_error", false, "The input is invalid. `param` names the field."),
  missing_project_header: code("invalid_request_error", false, "The header `Service-Project-Id` is required."),
  malformed_json: code("invalid_request_error", false, "The body is not valid JSON."),
  unsupported_input: code(
    "invalid_request_error",
    false,
    "The model does not accept part of the input, such as an image. Omit it or use another model.",
  ),
  previous_response_not_found: code(
    "invalid_request_error",
    false,
    "There is no stored response for this `previous_response_id`. Send the whole history instead.",
  ),
  method_not_allowed: code("invalid_request_error", false, "The path exists, but does not support this method."),
  request_timeout: code("invalid_request_error", true, "The request did not arrive in full in time."),
  request_too_large: code("invalid_request_error", false, "The body exceeds the size limit."),
  unsupported_media_type: code("invalid_request_error", false, "Send `content-type: application/json`."),
  headers_too_large: code("invalid_request_error", false, "The request headers exceed the size limit."),
  provider_token_invalid: code(
    "invalid_request_error",
    false,
    "The provider does not recognize this `providerToken`. It is wrong or was revoked.",
  ),
  provider_token_read_only: code(
    "invalid_request_error",
    false,
    "The `providerToken` is read-only. Renting machines requires read and write access.",
  ),
  provider_token_wrong_project: code(
    "invalid_request_error",
    false,
    "The `providerToken` is valid, but belongs to a different project at the provider than the node's machine.",
  ),
  invalid_credential: code(
    "authentication_error",
    false,
    "The credential is missing, malformed, unknown or revoked, or belongs to another host.",
  ),
  expired_credential: code("authentication_error", false, "The credential has expired. Get a new one."),
  node_deleted: code(
    "authentication_error",
    false,
    "The node was deleted. Its daemon removes the node's workloads and exits.",
  ),
  insufficient_balance: code("billing_error", false, "The project's balance does not cover the call."),
  key_budget_exceeded: code("billing_error", false, "The key's budget does not cover the call."),
  agent_budget_exceeded: code("billing_error", false, "The agent's budget does not cover the call."),
  held_by_running_calls: code(
    "billing_error",
    true,
    "Other calls in progress have reserved the remaining balance. Retry when they have finished.",
  ),
  permission_denied: code("permission_error", false, "The caller does not have permission."),
  model_not_allowed: code("permission_error", false, "The model is not in the allow list of the key or agent."),
  not_found: code("not_found_error", false, "The resource does not exist, or the caller cannot see it."),
  model_not_found: code("not_found_error", false, "The project has no such model."),
  session_not_found: code("not_found_error", false, "The user has no such chat session in this project."),
  already_exists: code("conflict_error", false, "A resource with this name or ID already exists."),
  idempotency_mismatch: code(
    "conflict_error",
    false,
    "This `Idempotency-Key` was used with a different body. Use a new key for a new call.",
  ),
  idempotency_in_progress: code(
    "conflict_error",
    true,
    "The call with this `Idempotency-Key` is still running. Retry after `retry-after`.",
  ),
  last_owner: code(
    "conflict_error",
    false,
    "A project must have at least one owner. Make another member an owner first, or delete the project.",
  ),
  project_deleting: code("conflict_error", false, "The project is being deleted and cannot be changed."),
  session_busy: code(
    "conflict_error",
    true,
    "Another turn of this chat session is still running. Retry after `retry-after`.",
  ),
  node_not_enrolled: code("conflict_error", false, "The node's daemon has not enrolled yet."),
  node_out_of_service: code("conflict_error", false, "The node is draining or drained. Resume it first."),
  node_unreachable: code(
    "conflict_error",
    false,
    "The agent's node does not respond, and the agent may still be running there.",
  ),
  agent_deleting: code("conflict_error", false, "The agent is being deleted."),
  missing_secrets: code(
    "conflict_error",
    false,
    "Secrets that the agent or its connectors need are not set. Set each listed secret, then start the agent.",
  ),
  bootstrap_token_used: code("conflict_error", false, "Another daemon has already enrolled with this bootstrap token."),
  rate_limit_exceeded: code("rate_limit_error", true, "Too many calls or attempts. Retry after `retry-after`."),
  internal: code("server_error", true, "Internal error. Find the request ID in the server's log."),
  upstream_failed: code("upstream_error", true, "The upstream could not be reached or its response was cut off."),
  upstream_rejected_credentials: code(
    "upstream_error",
    false,
    "The upstream rejected the credential or account that this platform uses there. Its settings need to be corrected.",
  ),
  upstream_timeout: code("upstream_error", true, "The upstream did not respond in time."),
  not_configured: code("unavailable_error", false, "A setting that this call needs is missing."),
  unavailable: code("unavailable_error", true, "The service is temporarily unavailable."),
  no_running_engine: code(
    "unavailable_error",
    true,
    "The node's engine cannot be called at the moment. The message says why and since when.",
  ),
  overloaded: code("unavailable_error", true, "Too many calls are in flight. Retry shortly."),
} as const satisfies Record<string, CodeFacts>;

export type ErrorCode = keyof typeof ERROR_CODES;

export interface ErrorDetails {
  /** Path of the invalid field (`messages[0].role`), name of a header, or null. */
  readonly param?: string | undefined;
  /** All problems of input that is validated field by field. */
  readonly errors?: readonly FieldError[] | undefined;
  readonly retryAfterSeconds?: number | undefined;
  /** This request will never succeed, even if its code is retryable. */
  readonly final?: boolean | undefined;
  /** The exceeded limit, for the `x-ratelimit-*` headers. */
  readonly rateLimit?: RateLimitState | undefined;
  /** The missing amounts, for programs. */
  readonly money?: MoneyState | undefined;
  /** The secrets to set, for programs. */
  readonly missingSecrets?: readonly MissingSecret[] | undefined;
  /** Default: derived from the code. */
  readonly source?: ErrorSource | undefined;
  /** For the log only; never returned. */
  readonly note?: string | undefined;
  readonly cause?: unknown;
}

/** One problem in an input. */
export interface FieldError {
  /** As `param`. */
  readonly param: string;
  readonly message: string;
}

/** `provider`: an upstream, including a node's engine. */
export type ErrorSource = "fairlead" | "provider";

/** Details of a 402. */
export interface MoneyState {
  /** The amount that the call needs to reserve (in addition). */
  readonly neededNanoDollars: number;
  /** The amount available, of the balance or the budget. */
  readonly leftNanoDollars: number;
  /** The amount reserved by running calls, which is returned less their cost. */
  readonly heldNanoDollars: number;
  /** When the budget resets, in RFC 3339; null: not by itself. */
  readonly resetsAt: string | null;
}

/** A secret that an agent needs to start. */
export interface MissingSecret {
  readonly name: string;
  /** The connector that needs it; null: the agent's guest or config. */
  readonly connectorSlug: string | null;
  /** It is set, but its node cannot decrypt it. */
  readonly stale: boolean;
}

export interface RateLimitState {
  readonly limit: number;
  readonly remaining: number;
  readonly resetSeconds: number;
}

/** An error for the caller. `message` is public: what is wrong and what to do. */
export class DomainError extends Error {
  override readonly name = "DomainError";
  readonly code: ErrorCode;
  readonly param: string | null;
  readonly errors: readonly FieldError[] | undefined;
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
    this.errors = details.errors;
    this.retryAfterSeconds = details.retryAfterSeconds;
    this.final = details.final ?? false;
    this.rateLimit = details.rateLimit;
    this.money = details.money;
    this.missingSecrets = details.missingSecrets;
    this.source = details.source ?? (ERROR_CODES[errorCode].type === "upstream_error" ? "provider" : "fairlead");
    this.note = details.note;
  }
}

/** The body of all error responses of both hosts. */
export interface ErrorBody {
  readonly error: {
    readonly message: string;
    readonly type: ErrorType;
    readonly code: ErrorCode;
    readonly param: string | null;
    readonly source: ErrorSource;
    readonly requestId: string;
    /** For input that is validated field by field. */
    readonly errors?: readonly FieldError[];
    /** For a 402. */
    readonly money?: MoneyState;
    /** For `missing_secrets`. */
    readonly missingSecrets?: readonly MissingSecret[];
  };
}

export function errorBody(error: DomainError, requestId: string): ErrorBody {
  const { type } = ERROR_CODES[error.code];
  const { message, code: errorCode, param, source, errors, money, missingSecrets } = error;
  const more = {
    ...(errors ? { errors } : {}),
    ...(money ? { money } : {}),
    ...(missingSecrets ? { missingSecrets } : {}),
  };
  return { error: { message, type, code: errorCode, param, source, requestId, ...more } };
}
