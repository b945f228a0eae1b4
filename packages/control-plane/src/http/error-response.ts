import { DomainError, ERROR_CODES, errorBody, type RateLimitState } from "@fairlead/protocol/errors";
import { isStoreAway, isUnstorableText } from "../db/errors.ts";
import { statusOf } from "./error-status.ts";

/** Where errors become answers: the one shape of both hosts (design §4), as plain values that any kind of server can send. */
export interface ErrorAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON text. */
  readonly body: string;
}

/** @param error anything that was thrown; what is no `DomainError` is told as `internal`, without its message. */
export function errorAnswer(error: unknown, requestId: string): ErrorAnswer {
  const told = toDomainError(error);
  const status = statusOf(told.code);
  return {
    status,
    headers: {
      "content-type": "application/json; charset=utf-8",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      "x-request-id": requestId,
      ...(ERROR_CODES[told.code].retry && !told.final ? {} : { "x-should-retry": "false" }),
      ...(status === 401 ? { "www-authenticate": "Bearer" } : {}),
      ...(told.retryAfterSeconds === undefined ? {} : { "retry-after": String(Math.ceil(told.retryAfterSeconds)) }),
      ...(told.rateLimit === undefined ? {} : rateLimitHeaders(told.rateLimit)),
    },
    body: JSON.stringify(errorBody(told, requestId)),
  };
}

function rateLimitHeaders({ limit, remaining, resetSeconds }: RateLimitState): Readonly<Record<string, string>> {
  return {
    "x-ratelimit-limit": String(limit),
    "x-ratelimit-remaining": String(remaining),
    "x-ratelimit-reset": String(Math.ceil(resetSeconds)),
  };
}

/** The error that a caller may be told of; the thrown one stays in `cause`, for the log. */
export function toDomainError(error: unknown): DomainError {
  if (error instanceof DomainError) return error;
  if (isStoreAway(error)) {
    const message = "The store cannot be used just now. Try again shortly.";
    return new DomainError("unavailable", message, { cause: error, retryAfterSeconds: 1 });
  }
  if (isUnstorableText(error)) {
    return new DomainError("invalid_request", "A text of the request holds a NUL character.", { cause: error });
  }
  return new DomainError("internal", "Something went wrong on our side. The server's log has this request id.", {
    cause: error,
  });
}

/** The answer as HTTP/1.1 text, for sockets that no HTTP server holds (any more). It ends the connection. */
export function rawErrorAnswer(answer: ErrorAnswer, reason: string): string {
  const headers = { ...answer.headers, "content-length": String(Buffer.byteLength(answer.body)), connection: "close" };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return [`HTTP/1.1 ${answer.status} ${reason}`, ...lines, "", answer.body].join("\r\n");
}
