import { DomainError } from "@fairlead/protocol/errors";
import type { ChatCompletionMessageToolCall } from "openai/resources/chat/completions/completions";
import { z } from "zod";
import { toChatLogprobs } from "../../chat/logprobs.ts";
import { without } from "../../json/parse.ts";
import { toChatAnnotations } from "../../responses/annotations.ts";
import { endOf, type OutputPiece, piecesOf, type ResponseCallPiece } from "../../responses/response-output.ts";
import type { ChatContext } from "../chat-to-responses/chat-to-responses-request.ts";
import { errorIn } from "../upstream-error.ts";
import { toChatUsage } from "../usage.ts";
import type { ChatCompletion, JsonObject } from "../wire.ts";

const responseSchema = z.looseObject({
  output: z.array(z.unknown()),
  service_tier: z.string().nullish().catch(null),
  usage: z.record(z.string(), z.unknown()).nullish().catch(null),
});

/**
 * Converts a complete response to a chat completion.
 * @param answer parsed by `parseExact`.
 * @throws DomainError `upstream_failed` if it is not a response, or failed.
 */
export function toChatCompletion(answer: unknown, context: ChatContext): ChatCompletion {
  const error = errorIn(answer);
  if (error) throw new DomainError("upstream_failed", error.message);
  const { data: response } = responseSchema.safeParse(answer);
  if (!response) throw new DomainError("upstream_failed", "The upstream sent JSON that is not a response.");
  const { finish } = endOf(response);
  if (finish === "failed") throw new DomainError("upstream_failed", "The upstream did not finish its response.");
  const pieces = response.output.flatMap(piecesOf);
  const message = toMessage(pieces);
  const logprobs = pieces.flatMap((piece) => (piece.kind === "text" ? toChatLogprobs(piece.logprobs) : []));
  return {
    ...extrasOf(response),
    id: context.ids.answer("chatcmpl"),
    object: "chat.completion",
    created: context.createdAt,
    model: context.model,
    choices: [
      {
        index: 0,
        message,
        logprobs: logprobs.length > 0 ? { content: logprobs, refusal: null } : null,
        finish_reason: finish === "stop" && message.tool_calls ? "tool_calls" : finish,
      },
    ],
    usage: toChatUsage(response.usage),
    ...(response.service_tier
      ? { service_tier: response.service_tier as NonNullable<ChatCompletion["service_tier"]> }
      : {}),
  };
}

type Message = ChatCompletion["choices"][number]["message"];

function toMessage(pieces: readonly OutputPiece[]): Message {
  const texts = (kind: OutputPiece["kind"]): string[] =>
    pieces.flatMap((piece) => (piece.kind === kind && piece.text !== "" ? [piece.text] : []));
  const calls = pieces.flatMap((piece) => (piece.kind === "call" ? [toToolCall(piece)] : []));
  const refusals = texts("refusal");
  const thinking = texts("thinking").join(BETWEEN_THOUGHTS);
  const annotations = pieces.flatMap((piece) => (piece.kind === "text" ? toChatAnnotations(piece.annotations) : []));
  const content = texts("text").join("");
  return {
    role: "assistant",
    content: content === "" && (calls.length > 0 || refusals.length > 0) ? null : content,
    refusal: refusals.length > 0 ? refusals.join("") : null,
    ...(thinking === "" ? {} : { reasoning_content: thinking }),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
    ...(annotations.length > 0 ? { annotations } : {}),
  };
}

/** Parts of a summary are paragraphs. */
export const BETWEEN_THOUGHTS = "\n\n";

function toToolCall({ type, id, name, text }: ResponseCallPiece): ChatCompletionMessageToolCall {
  return type === "function"
    ? { id, type, function: { name, arguments: text } }
    : { id, type, custom: { name, input: text } };
}

/** Fields that echo the request or are converted; others are upstream-specific. */
const RESPONSE_FIELDS = [
  "id",
  "object",
  "created_at",
  "completed_at",
  "status",
  "model",
  "output",
  "output_text",
  "error",
  "incomplete_details",
  "usage",
  "service_tier",
  "instructions",
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "temperature",
  "top_p",
  "presence_penalty",
  "frequency_penalty",
  "top_logprobs",
  "metadata",
  "previous_response_id",
  "conversation",
  "max_output_tokens",
  "max_tool_calls",
  "reasoning",
  "safety_identifier",
  "prompt",
  "prompt_cache_key",
  "prompt_cache_retention",
  "prompt_cache_options",
  "truncation",
  "text",
  "store",
  "background",
  "user",
  "choices",
  "created",
];

function extrasOf(response: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(without(response, RESPONSE_FIELDS)).filter(([, value]) => value !== null));
}
