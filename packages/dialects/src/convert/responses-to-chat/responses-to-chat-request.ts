import { DomainError } from "@fairlead/protocol/errors";
import { z } from "zod";
import type { ToolNames } from "../../chat/tool-names.ts";
import { RESPONSES_FIELDS, splitFields } from "../../json/fields.ts";
import { objectAt, parseAt } from "../../json/parse.ts";
import { type ResponseEcho, responseEcho } from "../../responses/response-echo.ts";
import { AnswerIds, type BridgeCall } from "../bridge-call.ts";
import type { ChatRequest, JsonObject } from "../wire.ts";
import { toMessages } from "./responses-input-to-messages.ts";
import { toChatTools } from "./responses-tools-to-chat.ts";

/** What converting the response of `/v1/responses` needs from its request. */
export interface ResponsesContext {
  readonly ids: AnswerIds;
  /** Unix seconds. */
  readonly createdAt: number;
  /** As the response names it. */
  readonly model: string;
  readonly echo: ResponseEcho;
  readonly tools: ToolNames;
  readonly stream: boolean;
  /** Paths of ignored parts of the request. */
  readonly ignored: readonly string[];
}

export interface ChatRequestWithContext {
  readonly request: ChatRequest;
  readonly context: ResponsesContext;
}

/**
 * Converts a body of `/v1/responses` to one of `/v1/chat/completions`.
 * @param body parsed by `parseExact`.
 * @throws DomainError `invalid_request` or `previous_response_not_found`, with `param`.
 */
export function toChatRequest(body: unknown, call: BridgeCall): ChatRequestWithContext {
  const submitted = objectAt(body, "body");
  refusePreviousResponse(submitted["previous_response_id"]);
  const { passed, converted, ignored } = splitFields(submitted, RESPONSES_FIELDS);
  const quirks = call.chat ?? {};
  const tools = toChatTools(converted);
  const { messages, ignored: unseen } = toMessages(converted, { quirks, names: tools.names });
  const streaming = streamFields(converted);
  parseAt(one, converted["n"], "n");
  const request = {
    ...passed,
    model: call.model,
    messages,
    ...tools.fields,
    ...limitFields(converted, quirks.outputLimit ?? "max_tokens"),
    ...textFields(converted["text"]),
    ...reasoningFields(converted["reasoning"]),
    ...logprobFields(converted),
    ...streaming,
  };
  const context = {
    ids: new AnswerIds(call.id),
    createdAt: call.createdAt,
    model: call.calledModel,
    echo: responseEcho(submitted),
    tools: tools.names,
    stream: "stream" in streaming,
    ignored: [...ignored, ...tools.ignored, ...unseen],
  };
  // The upstream validates unknown fields.
  return { request: request as ChatRequest, context };
}

const one = z.literal(1, { error: "must be 1, because a response has a single choice" }).optional();

function refusePreviousResponse(id: unknown): void {
  if (id === undefined || id === null) return;
  const message =
    "This host does not store responses. Send the whole history in `input`, and set `store: false` in the client.";
  throw new DomainError("previous_response_not_found", message, { param: "previous_response_id" });
}

function limitFields(source: JsonObject, name: "max_tokens" | "max_completion_tokens"): object {
  const limit = source["max_output_tokens"];
  return limit === undefined ? {} : { [name]: limit };
}

const textSchema = z.object({
  format: z.looseObject({ type: z.string() }).nullish(),
  verbosity: z.unknown().optional(),
});

function textFields(value: unknown): object {
  const { format, verbosity } = parseAt(textSchema.optional(), value, "text") ?? {};
  return { ...formatField(format), ...(verbosity === undefined || verbosity === null ? {} : { verbosity }) };
}

function formatField(format: JsonObject | null | undefined): object {
  if (!format || format["type"] === "text") return {};
  const { type, ...rest } = format;
  if (type !== "json_schema") return { response_format: format };
  const json_schema = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== null));
  return { response_format: { type, json_schema } };
}

function reasoningFields(value: unknown): object {
  const { effort } = parseAt(z.object({ effort: z.unknown().optional() }).optional(), value, "reasoning") ?? {};
  return effort === undefined || effort === null ? {} : { reasoning_effort: effort };
}

const includeSchema = z.array(z.string()).optional();

function logprobFields(source: JsonObject): object {
  const asked = parseAt(includeSchema, source["include"], "include") ?? [];
  const top = source["top_logprobs"];
  if (!asked.includes("message.output_text.logprobs") && (top === undefined || top === 0)) return {};
  return { logprobs: true, ...(top === undefined ? {} : { top_logprobs: top }) };
}

const streamOptionsSchema = z.record(z.string(), z.unknown()).optional();

function streamFields(source: JsonObject): object {
  if (!(parseAt(z.boolean().optional(), source["stream"], "stream") ?? false)) return {};
  const options = parseAt(streamOptionsSchema, source["stream_options"], "stream_options");
  // Always requested: the final response and billing need the usage.
  return { stream: true, stream_options: { ...options, include_usage: true } };
}
