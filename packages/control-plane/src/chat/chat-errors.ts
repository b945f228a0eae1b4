import { DomainError, ERROR_CODES, type ErrorCode } from "@fairlead/protocol/errors";
import { statusOf } from "../http/error-status.ts";
import { toErrorBody } from "../inference/bridge/upstream-error.ts";
import type { Dialect } from "../inference/dialect.ts";
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

const CALLERS_MISTAKES: ReadonlySet<number> = new Set([400, 413, 415, 422]);

/** What an upstream refuses of a call is its caller's mistake; everything else is the upstream's. */
export const isCallersMistake = ({ status }: Pick<Rejection, "status">): boolean => CALLERS_MISTAKES.has(status);

export interface RejectionAnswer {
  readonly status: 400 | 502;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON text. */
  readonly body: string;
}

/** An upstream's refusal, in its words and in our form. */
export function rejectionAnswer(
  rejection: Rejection,
  call: { readonly dialect: Dialect; readonly requestId: string },
): RejectionAnswer {
  const { headers, body } = rejection;
  const text = body.toString("utf8");
  const { error } = toErrorBody(jsonOr<unknown>(text, text), call);
  const isCallers = isCallersMistake(rejection);
  const code = error.code ?? (isCallers ? "invalid_request" : "upstream_failed");
  const retryAfter = headers["retry-after"];
  return {
    status: isCallers ? 400 : 502,
    headers: {
      "content-type": "application/json; charset=utf-8",
      ...(isCallers ? { "x-should-retry": "false" } : {}),
      ...(retryAfter === undefined ? {} : { "retry-after": String(retryAfter) }),
    },
    body: JSON.stringify({ error: { ...error, code } }),
  };
}
