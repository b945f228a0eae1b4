import type { IncomingHttpHeaders } from "node:http";
import { DomainError, type ErrorCode, errorBody } from "@fairlead/protocol/errors";
import { isObject } from "./bridge/parse.ts";
import {
  errorForChat,
  errorForResponses,
  errorIn,
  isAccountMatter,
  readUpstreamError,
  type ToldError,
} from "./bridge/upstream-error.ts";
import type { Dialect } from "./dialect.ts";
import type { CallOutcome } from "./inference-call.ts";
import { rejectedCredentials } from "./relayed-answer.ts";
import { retryAfterSeconds } from "./upstream-faults.ts";

/** What an upstream's refusal is to the caller: the message is the upstream's, status, type and form are ours (design §4). Pure. */

export interface RefusalHead {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
}

export interface UpstreamRefusal {
  readonly error: DomainError;
  /** The upstream's own word for a mistake of the caller's: programs act on some (`context_length_exceeded`). Null: it has none. */
  readonly word: string | null;
}

/** The caller's mistakes; of all other statuses nobody but the upstream can say what they mean. */
const MISTAKES: Readonly<Record<number, ErrorCode>> = {
  400: "invalid_request",
  413: "request_too_large",
  415: "unsupported_media_type",
  422: "invalid_request",
};

/** @param body parsed, or a text that is no JSON. */
export function readRefusal(body: unknown, { status, headers }: RefusalHead): UpstreamRefusal {
  const refused = isObject(body) && body["error"] ? body["error"] : body;
  if (isAccountMatter(refused)) return { error: rejectedCredentials(), word: null };
  const told = errorIn(body) ?? readUpstreamError(body);
  const { message, param } = told;
  const source = "provider";
  if (status === 429) {
    const error = new DomainError("rate_limit_exceeded", message, {
      source,
      retryAfterSeconds: retryAfterSeconds(headers),
    });
    return { error, word: null };
  }
  const code = MISTAKES[status] ?? (status === 404 ? whatIsMissing(told) : null);
  if (code === null) {
    return {
      error: new DomainError("upstream_failed", message, { retryAfterSeconds: retryAfterSeconds(headers) }),
      word: null,
    };
  }
  const at = code === "model_not_found" ? (param ?? "model") : (param ?? undefined);
  return { error: new DomainError(code, message, { source, param: at }), word: wordOf(told) };
}

/** Null: the upstream does not know the path, which is a matter of its settings. */
function whatIsMissing({ message, type, code, param }: ToldError): "model_not_found" | "not_found" | null {
  if (code === "model_not_found" || param === "model" || /\bmodel\b/i.test(message)) return "model_not_found";
  return param !== null || type === "invalid_request_error" ? "not_found" : null;
}

/** llama.cpp says by the type what OpenAI says by the code, and clients that shorten a conversation know the latter. */
const WORDS_OF_TYPES: Readonly<Record<string, string>> = { exceed_context_size_error: "context_length_exceeded" };

/** Numbers repeat the status. */
function wordOf({ code, type }: ToldError): string | null {
  const word = WORDS_OF_TYPES[type] ?? code;
  return word !== null && /^[a-z]\w*$/i.test(word) ? word : null;
}

/** @returns the body of a refusal that is the caller's matter. @throws DomainError of one that is not. */
export function refusalText(
  body: unknown,
  head: RefusalHead,
  { dialect, requestId }: { readonly dialect: Dialect; readonly requestId: string },
): string {
  const { error, word } = readRefusal(body, head);
  if (!isCallersMistake(error)) throw error;
  const told = errorBody(error, requestId).error;
  const named = dialect === "chat" ? errorForChat(told, requestId) : errorForResponses(told, requestId);
  return JSON.stringify({ error: { ...named, code: word ?? told.code } });
}

/** Whether an upstream refused the call itself, so that to send it again would not help. */
export function isCallersMistake({ code, source }: DomainError): boolean {
  return source === "provider" && code !== "rate_limit_exceeded" && !code.startsWith("upstream_");
}

/** What came of a call that is told of this error. */
export function outcomeOf(error: DomainError): CallOutcome {
  if (isCallersMistake(error)) return "rejected";
  return error.source === "provider" && error.code === "rate_limit_exceeded" ? "upstream_failed" : error.code;
}
