import { type DomainError, errorBody } from "@fairlead/protocol/errors";
import { isObject } from "../json/parse.ts";
import type { JsonObject, WireError } from "./wire.ts";

/** Reads errors of upstreams, and creates the bridge's errors. */

/** An error that is not assigned to a call yet. */
export type ToldError = Omit<WireError, "requestId">;

const LONGEST_MESSAGE = 4000;
const NO_MESSAGE = "The upstream returned an error without a message.";

/** The error in an event or a complete response, or null. */
export function errorIn(value: unknown): ToldError | null {
  if (!isObject(value)) return null;
  if (value["error"]) return readUpstreamError(value["error"]);
  return value["object"] === "error" ? readUpstreamError(value) : null;
}

/**
 * @param value the upstream's `error`: OpenAI's object, a string, or FastAPI's `detail`.
 * @returns the upstream's message, except for problems with our credential or account.
 */
export function readUpstreamError(value: unknown): ToldError {
  const error = isObject(value) ? value : { message: value };
  const message = [error["message"], error["detail"], error["error"]].find(
    (each) => typeof each === "string" && each !== "",
  );
  const code = typeof error["code"] === "number" ? String(error["code"]) : textOrNull(error["code"]);
  // The type of a flat event says only that it is an error.
  const type = error["type"] === "error" ? "upstream_error" : (textOrNull(error["type"]) ?? "upstream_error");
  if (isAccountMatter(error)) {
    return {
      message: "The upstream rejected this platform's credential or account.",
      type: "upstream_error",
      param: null,
      code: "upstream_failed",
      source: "provider",
    };
  }
  const told = typeof message === "string" ? message.slice(0, LONGEST_MESSAGE).toWellFormed() : NO_MESSAGE;
  return { message: told, type, param: textOrNull(error["param"]), code, source: "provider" };
}

/** Codes and types of rejected credentials or accounts, which are ours and not the caller's. */
const OURS =
  /^(401|402|403|authentication_error|permission_error|billing_error|invalid_api_key|insufficient_quota|insufficient_balance|account_deactivated)$/;

/** @param error the upstream's `error`. */
export function isAccountMatter(error: unknown): boolean {
  if (!isObject(error)) return false;
  const { code, type } = error;
  return [code, type].some((each) => OURS.test(typeof each === "number" || typeof each === "string" ? `${each}` : ""));
}

const OVERLOADED =
  /\boverload|_overload|\b(?:server|model|engine) is (?:too )?busy\b|\b(?:no|at|out of|insufficient) capacity\b/i;

/** Whether the upstream reports overload. */
export function saysOverloaded({ code, type, message }: ToldError): boolean {
  return [code, type, message].some((each) => each !== null && OVERLOADED.test(each));
}

/** Kinds of input, and how engines reject them. */
const INPUT_KIND =
  /\b(?:images?|image_url|pictures?|vision|audio|videos?|pdfs?|multi-?modal|mmproj|tools?|tool_choice|content\[\]\.type|content (?:type|part)s?)\b/i;
const NOT_TAKEN: readonly string[] = [
  "unsupported",
  "not supported",
  "not support ",
  "n't support ",
  "not enabled",
  "not accept ",
  "cannot accept",
  "only supports text",
  "only accepts text",
  "text-only",
  "text only",
  "not a multimodal",
  "not a vision",
  "requires --",
];
const INPUT_WORD =
  /^(?:invalid_request_error|bad_?request(?:_?error)?|unsupported_(?:input|content|media)\w*|exceed_context_size_error|context_length_exceeded)$/i;

/** Whether the upstream blames the input, whatever the status: llama.cpp rejects images with 500. */
export function blamesInput({ code, type, message }: ToldError): boolean {
  if ([code, type].some((each) => each !== null && INPUT_WORD.test(each))) return true;
  const words = message.toLowerCase();
  return INPUT_KIND.test(words) && NOT_TAKEN.some((each) => words.includes(each));
}

/** Our own error, or one between us and the upstream. */
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

/** The upstream names its own field; the caller uses another name. */
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
