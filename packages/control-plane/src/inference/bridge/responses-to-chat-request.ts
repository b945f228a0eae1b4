import { DomainError } from "@fairlead/protocol/errors";
import { z } from "zod";
import { AnswerIds, type BridgeCall } from "./bridge-call.ts";
import { RESPONSES_FIELDS, splitFields } from "./fields.ts";
import { objectAt, parseAt } from "./parse.ts";
import { type ResponseEcho, responseEcho } from "./response-echo.ts";
import { toMessages } from "./responses-input-to-messages.ts";
import { toChatTools } from "./responses-tools-to-chat.ts";
import type { ToolNames } from "./tool-names.ts";
import type { ChatRequest, JsonObject } from "./wire.ts";

/** What the answer to a bridged `/v1/responses` call has to know of its request. */
export interface ResponsesContext {
  readonly ids: AnswerIds;
  /** Unix seconds. */
  readonly createdAt: number;
  readonly model: string;
  readonly echo: ResponseEcho;
  readonly tools: ToolNames;
  readonly stream: boolean;
  /** Paths of the request's parts that stay without effect. */
  readonly ignored: readonly string[];
}

export interface ChatRequestWithContext {
  readonly request: ChatRequest;
  readonly context: ResponsesContext;
}

/**
 * A body of `/v1/responses` as one of `/v1/chat/completions`.
 *
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
    model: call.model,
    echo: responseEcho(submitted),
    tools: tools.names,
    stream: "stream" in streaming,
    ignored: [...ignored, ...tools.ignored, ...unseen],
  };
  // The fields that rode along are the upstream's to judge.
  return { request: request as ChatRequest, context };
}

const one = z.literal(1, { error: "must be 1: a response has one answer" }).optional();

function refusePreviousResponse(id: unknown): void {
  if (id === undefined || id === null) return;
  const message =
    "This host stores no responses. Send the whole history in `input`, and set `store: false` in the client.";
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
  // Asked for whatever the client wants: the final response tells the usage, and so does the bill.
  return { stream: true, stream_options: { ...options, include_usage: true } };
}
