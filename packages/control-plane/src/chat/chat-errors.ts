import { DomainError, ERROR_CODES, type ErrorCode } from "@fairlead/protocol/errors";
import { statusOf } from "../http/error-status.ts";
import { isObject } from "../inference/bridge/parse.ts";
import { jsonOr } from "../inference/json-or.ts";
import type { Rejection } from "./turn-sink.ts";

/** Errors as the chat routes tell them: the table of interface §7, to the letter. */

const UNKNOWN_MODEL: ReadonlySet<ErrorCode> = new Set(["model_not_found", "model_not_allowed"]);

/** Where these routes tell another kind of error than the rest of the platform host does. */
export function chatError(error: DomainError): DomainError {
  // 404 means the session alone.
  if (error.code === "not_found") {
    return new DomainError("permission_denied", "You have no access to this project.", { cause: error });
  }
  if (!UNKNOWN_MODEL.has(error.code)) return error;
  return new DomainError("invalid_request", error.message, { param: "model", cause: error });
}

/** "Inference request failed" is 502, whatever the reason; the code is the finer one. */
export function chatStatusOf(code: ErrorCode): number {
  const isUpstreams = ERROR_CODES[code].type === "upstream_error" || code === "no_running_engine";
  return isUpstreams ? 502 : statusOf(code);
}

export interface RejectionAnswer {
  readonly headers: Readonly<Record<string, string>>;
  /** JSON text. */
  readonly body: string;
}

/** Answered with 400: what an upstream refuses of a call is its caller's mistake, be it a model that it does not have (design §4). */
export function rejectionAnswer({ status, body }: Rejection): RejectionAnswer {
  const text = body.toString("utf8");
  return {
    headers: { "content-type": "application/json; charset=utf-8", "x-should-retry": "false" },
    body: status === 404 ? asInvalid(text) : text,
  };
}

/** 404 means the session alone. */
function asInvalid(text: string): string {
  const body = jsonOr(text, null);
  const error = isObject(body) && isObject(body["error"]) ? body["error"] : {};
  return JSON.stringify({ error: { ...error, type: "invalid_request_error", code: "invalid_request" } });
}

/** An upstream's own limits are a way of failing here: 429 is the project's. */
export function asUpstreams(error: DomainError): DomainError {
  const { code, source, message, retryAfterSeconds } = error;
  if (source !== "provider" || code !== "rate_limit_exceeded") return error;
  return new DomainError("upstream_failed", message, { retryAfterSeconds, cause: error });
}
