import type { Dialect } from "@fairlead/dialects/calls/dialect";
import { rejectedCredentials } from "@fairlead/dialects/calls/relayed-answer";
import {
  blamesInput,
  errorIn,
  isAccountMatter,
  readUpstreamError,
  saysOverloaded,
  type ToldError,
} from "@fairlead/dialects/convert/upstream-error";
import { DIALECT_SPECS } from "@fairlead/dialects/dialect-specs";
import { isObject } from "@fairlead/dialects/json/parse";
import { DomainError, ERROR_CODES, type ErrorCode, errorBody } from "@fairlead/protocol/errors";
import type { CallOutcome } from "../calls/inference-call.ts";

/** Converts an upstream's error response: the message is the upstream's; status, type and form are ours. Pure. */

export interface RefusalHead {
  readonly status: number;
  readonly retryAfterSeconds: number | undefined;
}

export interface UpstreamRefusal {
  readonly error: DomainError;
  /** The upstream's own code for an error of the caller, which some programs handle (`context_length_exceeded`). Null for none. */
  readonly word: string | null;
}

/** Errors of the caller; other statuses are ambiguous. */
const MISTAKES: Readonly<Record<number, ErrorCode>> = {
  400: "invalid_request",
  413: "request_too_large",
  415: "unsupported_media_type",
  422: "invalid_request",
};

/** @param body parsed, or a string if it is not JSON. */
export function readUpstreamRefusal(body: unknown, { status, retryAfterSeconds }: RefusalHead): UpstreamRefusal {
  const refused = isObject(body) && body["error"] ? body["error"] : body;
  if (isAccountMatter(refused)) return { error: rejectedCredentials(), word: null };
  const told = errorIn(body) ?? readUpstreamError(body);
  const { message, param } = told;
  const source = "provider";
  const code = mistakeOf(status, told);
  if (code === null) {
    const details = { source, retryAfterSeconds, note: `returned status ${status}` } as const;
    return { error: new DomainError(failureCode(status, told), message, details), word: null };
  }
  const at = code === "model_not_found" ? (param ?? "model") : (param ?? undefined);
  return { error: new DomainError(code, message, { source, param: at }), word: wordOf(told) };
}

/** @returns null for a failure of the upstream. */
function mistakeOf(status: number, told: ToldError): ErrorCode | null {
  if (status === 404) return whatIsMissing(told);
  return MISTAKES[status] ?? (status >= 500 && blamesInput(told) ? "unsupported_input" : null);
}

function failureCode(status: number, told: ToldError): ErrorCode {
  if (status === 429) return "rate_limit_exceeded";
  if (status === 529 || (status === 503 && saysOverloaded(told))) return "overloaded";
  return "upstream_failed";
}

/** Null: the path does not exist at the upstream, so its settings are wrong. */
function whatIsMissing({ message, type, code, param }: ToldError): "model_not_found" | "not_found" | null {
  if (code === "model_not_found" || param === "model" || /\bmodel\b/i.test(message)) return "model_not_found";
  return param !== null || type === "invalid_request_error" ? "not_found" : null;
}

/** llama.cpp uses the type for what OpenAI puts in the code, which clients check to shorten a conversation. */
const WORDS_OF_TYPES: Readonly<Record<string, string>> = { exceed_context_size_error: "context_length_exceeded" };

/** Numeric codes repeat the status. */
function wordOf({ code, type }: ToldError): string | null {
  const word = WORDS_OF_TYPES[type] ?? code;
  return word !== null && /^[a-z]\w*$/i.test(word) ? word : null;
}

/** @returns the body of an error caused by the caller. @throws DomainError for other errors. */
export function refusalText(
  body: unknown,
  head: RefusalHead,
  { dialect, requestId }: { readonly dialect: Dialect; readonly requestId: string },
): string {
  const { error, word } = readUpstreamRefusal(body, head);
  // Has its own status, not the upstream's.
  if (!isCallersMistake(error) || error.code === "unsupported_input") throw error;
  const told = errorBody(error, requestId).error;
  const named = DIALECT_SPECS[dialect].nameError(told, requestId);
  return JSON.stringify({ error: { ...named, code: word ?? told.code } });
}

const MISTAKE_TYPES: ReadonlySet<string> = new Set(["invalid_request_error", "not_found_error"]);

/** Whether an upstream rejected the call itself, so that a retry would not help. */
export function isCallersMistake({ code, source }: DomainError): boolean {
  return source === "provider" && MISTAKE_TYPES.has(ERROR_CODES[code].type);
}

/** The outcome of a call with this error. */
export function outcomeOf(error: DomainError): CallOutcome {
  if (error.source !== "provider") return error.code;
  if (isCallersMistake(error)) return "rejected";
  return ERROR_CODES[error.code].type === "upstream_error" ? error.code : "upstream_failed";
}
