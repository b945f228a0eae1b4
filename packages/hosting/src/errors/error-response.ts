import { DomainError, ERROR_CODES, errorBody, type RateLimitState } from "@fairlead/protocol/errors";
import { statusOf } from "./error-status.ts";
import { isStoreAway, isUnstorableText, storeFault } from "./store-errors.ts";

/** Converts errors to responses, in the form shared by both hosts. */
export interface ErrorAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON text. */
  readonly body: string;
}

/** Default retry delay. */
const DEFAULT_RETRY_SECONDS = 5;

/** @param error any thrown value; anything but a `DomainError` becomes `internal`, without its message. */
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
      ...retryAfter(told, status),
      ...(told.rateLimit === undefined ? {} : rateLimitHeaders(told.rateLimit)),
    },
    body: JSON.stringify(errorBody(told, requestId)),
  };
}

/** Set on every retryable 429 and 503. */
function retryAfter({ code, final, retryAfterSeconds }: DomainError, status: number): Readonly<Record<string, string>> {
  const passes = (status === 429 || status === 503) && ERROR_CODES[code].retry && !final;
  const seconds = retryAfterSeconds ?? (passes ? DEFAULT_RETRY_SECONDS : undefined);
  return seconds === undefined ? {} : { "retry-after": String(Math.max(1, Math.ceil(seconds))) };
}

function rateLimitHeaders({ limit, remaining, resetSeconds }: RateLimitState): Readonly<Record<string, string>> {
  return {
    "x-ratelimit-limit": String(limit),
    "x-ratelimit-remaining": String(remaining),
    "x-ratelimit-reset": String(Math.ceil(resetSeconds)),
  };
}

/** The error as returned to the caller; the original stays in `cause` for the log. */
export function toDomainError(error: unknown): DomainError {
  if (error instanceof DomainError) return error;
  if (isStoreAway(error)) {
    const fault = storeFault(error);
    const message = fault === null ? "The store is temporarily unavailable. Retry shortly." : `${upperFirst(fault)}.`;
    return new DomainError("unavailable", message, { cause: error, retryAfterSeconds: 1 });
  }
  if (isUnstorableText(error)) {
    return new DomainError("invalid_request", "A string in the request contains a NUL character.", { cause: error });
  }
  return new DomainError("internal", "Internal error. Find the request ID in the server's log.", {
    cause: error,
  });
}

/** @param cause why the server is not ready; included in the message only if the store cannot write. */
export function notReady(cause: unknown): DomainError {
  const fault = storeFault(cause);
  const message = fault === null ? "The server is not ready." : `The server is not ready: ${fault}.`;
  return new DomainError("unavailable", message, { cause, retryAfterSeconds: 1 });
}

function upperFirst(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** The response as HTTP/1.1 text, for sockets without an HTTP server. Closes the connection. */
export function rawErrorAnswer(answer: ErrorAnswer, reason: string): string {
  const headers = { ...answer.headers, "content-length": String(Buffer.byteLength(answer.body)), connection: "close" };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return [`HTTP/1.1 ${answer.status} ${reason}`, ...lines, "", answer.body].join("\r\n");
}
