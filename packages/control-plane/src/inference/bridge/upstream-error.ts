import { type DomainError, errorBody } from "@fairlead/protocol/errors";
import { isObject } from "./parse.ts";
import type { JsonObject, WireError } from "./wire.ts";

/** Errors, whole or in a stream: reading what upstreams send, and what the bridge tells its caller. */

/** An error before it is known whose call it ends. */
export type ToldError = Omit<WireError, "requestId">;

const LONGEST_MESSAGE = 4000;
const NO_MESSAGE = "The upstream told of an error without a message.";

/** The error that an event of a stream, or a whole answer, tells of; null where it tells of none. */
export function errorIn(value: unknown): ToldError | null {
  if (!isObject(value)) return null;
  if (value["error"]) return readUpstreamError(value["error"]);
  return value["object"] === "error" ? readUpstreamError(value) : null;
}

/**
 * @param value the upstream's `error`: OpenAI's object, or a bare text, or what FastAPI makes (`detail`).
 * @returns in the words of the upstream, but for its quarrels with us over credentials and money, which are not the caller's.
 */
export function readUpstreamError(value: unknown): ToldError {
  const error = isObject(value) ? value : { message: value };
  const message = [error["message"], error["detail"], error["error"]].find(
    (each) => typeof each === "string" && each !== "",
  );
  const code = typeof error["code"] === "number" ? String(error["code"]) : textOrNull(error["code"]);
  // The type of a flat event says only that it is one.
  const type = error["type"] === "error" ? "upstream_error" : (textOrNull(error["type"]) ?? "upstream_error");
  if (isAccountMatter(error)) {
    return {
      message: "The upstream refused this platform's own credential or account.",
      type: "upstream_error",
      param: null,
      code: "upstream_failed",
      source: "provider",
    };
  }
  const told = typeof message === "string" ? message.slice(0, LONGEST_MESSAGE).toWellFormed() : NO_MESSAGE;
  return { message: told, type, param: textOrNull(error["param"]), code, source: "provider" };
}

/** Codes and types by which upstreams refuse credentials or accounts: ours, not the caller's. */
const OURS =
  /^(401|402|403|authentication_error|permission_error|billing_error|invalid_api_key|insufficient_quota|insufficient_balance|account_deactivated)$/;

/** @param error the upstream's `error`. */
export function isAccountMatter(error: unknown): boolean {
  if (!isObject(error)) return false;
  const { code, type } = error;
  return [code, type].some((each) => OURS.test(typeof each === "number" || typeof each === "string" ? `${each}` : ""));
}

/** An error of ours, or of what stands between us and the upstream. */
export function ownError(error: DomainError): ToldError {
  const { requestId: _unknown, ...told } = errorBody(error, "").error;
  return told;
}

const textOrNull = (value: unknown): string | null => (typeof value === "string" ? value : null);

const RESPONSES_PARAMS: JsonObject = {
  messages: "input",
  max_tokens: "max_output_tokens",
  max_completion_tokens: "max_output_tokens",
  response_format: "text.format",
  reasoning_effort: "reasoning.effort",
  verbosity: "text.verbosity",
  logprobs: "include",
};

const CHAT_PARAMS: JsonObject = {
  input: "messages",
  instructions: "messages",
  max_output_tokens: "max_completion_tokens",
  text: "response_format",
  reasoning: "reasoning_effort",
  include: "logprobs",
};

/** An upstream names the field that it was sent; the caller knows it by another name. */
export const errorForResponses = (error: ToldError, requestId: string): WireError => ({
  ...renamed(error, RESPONSES_PARAMS),
  requestId,
});
export const errorForChat = (error: ToldError, requestId: string): WireError => ({
  ...renamed(error, CHAT_PARAMS),
  requestId,
});

function renamed(error: ToldError, names: JsonObject): ToldError {
  const [field = ""] = error.param?.split(/[.[]/, 1) ?? [];
  const name = Object.hasOwn(names, field) ? names[field] : undefined;
  return typeof name === "string" ? { ...error, param: name } : error;
}
