import type { ErrorCode } from "@fairlead/protocol/errors";

/** The one map from error code to HTTP status (design §4); both hosts answer by it. */
const STATUS_BY_CODE: Record<ErrorCode, number> = {
  invalid_request: 400,
  missing_project_header: 400,
  malformed_json: 400,
  previous_response_not_found: 400,
  method_not_allowed: 405,
  request_timeout: 408,
  request_too_large: 413,
  unsupported_media_type: 415,
  headers_too_large: 431,
  invalid_credential: 401,
  expired_credential: 401,
  node_deleted: 401,
  insufficient_balance: 402,
  key_budget_exceeded: 402,
  held_by_running_calls: 402,
  permission_denied: 403,
  model_not_allowed: 403,
  not_found: 404,
  model_not_found: 404,
  session_not_found: 404,
  already_exists: 409,
  idempotency_mismatch: 409,
  idempotency_in_progress: 409,
  last_owner: 409,
  project_deleting: 409,
  session_busy: 409,
  node_not_enrolled: 409,
  node_out_of_service: 409,
  bootstrap_token_used: 409,
  rate_limit_exceeded: 429,
  internal: 500,
  upstream_failed: 502,
  upstream_rejected_credentials: 502,
  upstream_timeout: 504,
  not_configured: 503,
  unavailable: 503,
  no_running_engine: 503,
  overloaded: 503,
};

export function statusOf(code: ErrorCode): number {
  return STATUS_BY_CODE[code];
}
