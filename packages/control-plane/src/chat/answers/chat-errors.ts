import { jsonOr } from "@fairlead/dialects/json/json-or";
import { isObject } from "@fairlead/dialects/json/parse";
import { statusOf } from "@fairlead/hosting/errors/error-status";
import { DomainError, ERROR_CODES, type ErrorCode } from "@fairlead/protocol/errors";
import type { Rejection } from "./turn-sink.ts";

/** Errors in the form of the chat routes (docs/interface.md §7). */

const UNKNOWN_MODEL: ReadonlySet<ErrorCode> = new Set(["model_not_found", "model_not_allowed"]);

/** Statuses that differ from the rest of the platform host. */
export function chatError(error: DomainError): DomainError {
  // 404 is reserved for the session.
  if (error.code === "not_found") {
    return new DomainError("permission_denied", "You do not have access to this project.", { cause: error });
  }
  if (!UNKNOWN_MODEL.has(error.code)) return error;
  return new DomainError("invalid_request", error.message, { param: "model", cause: error });
}

/** Every inference failure is 502; the code distinguishes the reason. */
export function chatStatusOf(code: ErrorCode): number {
  const isUpstreams = ERROR_CODES[code].type === "upstream_error" || code === "no_running_engine";
  return isUpstreams ? 502 : statusOf(code);
}

/** An overloaded upstream keeps its code; 503 is reserved for this server. */
export function statusOfChatError({ code, source }: DomainError): number {
  return source === "provider" && code === "overloaded" ? 502 : chatStatusOf(code);
}

export interface RejectionAnswer {
  readonly headers: Readonly<Record<string, string>>;
  /** JSON text. */
  readonly body: string;
}

/** Status 400: an upstream's rejection of a call is the caller's error, including an unknown model. */
export function rejectionAnswer({ status, body }: Rejection): RejectionAnswer {
  const text = body.toString("utf8");
  return {
    headers: { "content-type": "application/json; charset=utf-8", "x-should-retry": "false" },
    body: status === 404 ? asInvalid(text) : text,
  };
}

/** 404 is reserved for the session. */
function asInvalid(text: string): string {
  const body = jsonOr(text, null);
  const error = isObject(body) && isObject(body["error"]) ? body["error"] : {};
  return JSON.stringify({ error: { ...error, type: "invalid_request_error", code: "invalid_request" } });
}

/** An upstream's own rate limit is a failure here; 429 is reserved for the project's. */
export function asUpstreams(error: DomainError): DomainError {
  const { code, source, message, retryAfterSeconds } = error;
  if (source !== "provider" || code !== "rate_limit_exceeded") return error;
  return new DomainError("upstream_failed", message, { retryAfterSeconds, cause: error });
}
