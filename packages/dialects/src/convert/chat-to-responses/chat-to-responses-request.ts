import { z } from "zod";
import { CHAT_FIELDS, splitFields } from "../../json/fields.ts";
import { objectAt, parseAt, without } from "../../json/parse.ts";
import { AnswerIds, type BridgeCall } from "../bridge-call.ts";
import type { JsonObject, ResponsesRequest } from "../wire.ts";
import { toInput } from "./chat-messages-to-input.ts";
import { toResponsesTools } from "./chat-tools-to-responses.ts";

/** What converting the response of `/v1/chat/completions` needs from its request. */
export interface ChatContext {
  readonly ids: AnswerIds;
  /** Unix seconds. */
  readonly createdAt: number;
  /** As the response names it. */
  readonly model: string;
  readonly stream: boolean;
  /** Whether the client asked for the usage of a stream. */
  readonly includeUsage: boolean;
  /** Paths of ignored parts of the request. */
  readonly ignored: readonly string[];
}

export interface ResponsesRequestWithContext {
  readonly request: ResponsesRequest;
  readonly context: ChatContext;
}

/**
 * Converts a body of `/v1/chat/completions` to one of `/v1/responses`.
 * @param body parsed by `parseExact`.
 * @throws DomainError `invalid_request` with `param`.
 */
export function toResponsesRequest(body: unknown, call: BridgeCall): ResponsesRequestWithContext {
  const { passed, converted, ignored } = splitFields(objectAt(body, "body"), CHAT_FIELDS);
  const ids = new AnswerIds(call.id);
  const { input, ignored: unseen } = toInput(converted["messages"], ids);
  const stream = parseAt(z.boolean().optional(), converted["stream"], "stream") ?? false;
  const options = parseAt(streamOptionsSchema, converted["stream_options"], "stream_options") ?? {};
  parseAt(one, converted["n"], "n");
  parseAt(textOnly, converted["modalities"], "modalities");
  const request = {
    ...passed,
    model: call.model,
    input,
    // The responses dialect stores by default.
    store: converted["store"] ?? false,
    ...limitField(converted),
    ...toResponsesTools(converted),
    ...textField(converted),
    ...("reasoning_effort" in converted ? { reasoning: { effort: converted["reasoning_effort"] } } : {}),
    ...logprobFields(converted),
    ...(stream ? { stream } : {}),
    ...streamOptions(stream, options),
  };
  const context = {
    ids,
    createdAt: call.createdAt,
    model: call.calledModel,
    stream,
    includeUsage: stream && options.include_usage === true,
    ignored: [...ignored, ...unseen],
  };
  // The upstream validates unknown fields.
  return { request: request as ResponsesRequest, context };
}

const one = z.literal(1, { error: "must be 1, because a response has a single choice" }).optional();
const textOnly = z
  .array(z.literal("text", { error: "must be text, because Responses do not support audio output" }))
  .optional();
const streamOptionsSchema = z.looseObject({ include_usage: z.boolean().nullish() }).optional();

function streamOptions(stream: boolean, options: JsonObject): object {
  const rest = without(options, ["include_usage"]);
  return stream && Object.keys(rest).length > 0 ? { stream_options: rest } : {};
}

function limitField(source: JsonObject): object {
  const limit = source["max_completion_tokens"] ?? source["max_tokens"];
  return limit === undefined ? {} : { max_output_tokens: limit };
}

const formatSchema = z.looseObject({ type: z.string(), json_schema: z.record(z.string(), z.unknown()).nullish() });

function textField(source: JsonObject): object {
  const format = parseAt(formatSchema.optional(), source["response_format"], "response_format");
  const { verbosity } = source;
  if (format === undefined && verbosity === undefined) return {};
  const { json_schema, ...rest } = format ?? {};
  return {
    text: {
      ...(format ? { format: { ...json_schema, ...rest } } : {}),
      ...(verbosity === undefined ? {} : { verbosity }),
    },
  };
}

function logprobFields(source: JsonObject): object {
  if (source["logprobs"] !== true) return {};
  const top = source["top_logprobs"];
  return { include: ["message.output_text.logprobs"], ...(top === undefined ? {} : { top_logprobs: top }) };
}
