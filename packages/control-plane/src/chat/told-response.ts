import { AnswerIds } from "../inference/bridge/bridge-call.ts";
import type { ChatContext } from "../inference/bridge/chat-to-responses-request.ts";
import { isObject } from "../inference/bridge/parse.ts";
import { toChatCompletion } from "../inference/bridge/responses-to-chat-answer.ts";
import { ChatStream } from "../inference/bridge/responses-to-chat-stream.ts";
import { chatFrame, DONE_FRAME } from "../inference/bridge/sse.ts";
import type { JsonObject } from "../inference/bridge/wire.ts";
import type { Dialect } from "../inference/dialect.ts";

/** A response that is known whole, told as the stream of either dialect: an acknowledgement, or an answer once more. Pure. */

export interface Telling {
  readonly requestId: string;
  readonly dialect: Dialect;
  /** In the chat dialect: whether the caller asked for the usage of a stream. */
  readonly includeUsage: boolean;
}

/** @returns whole frames, `[DONE]` included. */
export function responseAsStream(response: JsonObject, telling: Telling): string {
  const events = responseEvents(response);
  if (telling.dialect === "responses") return events.map(frame).join("") + DONE_FRAME;
  const stream = new ChatStream(chatContext(response, telling));
  const chunks = events.flatMap((event) => stream.push(event));
  return chunks.map(chatFrame).join("") + DONE_FRAME;
}

/** @returns the JSON value that the dialect has for it. */
export function responseAsWhole(response: JsonObject, telling: Telling): unknown {
  return telling.dialect === "responses" ? response : toChatCompletion(response, chatContext(response, telling));
}

function chatContext(response: JsonObject, { requestId, includeUsage }: Telling): ChatContext {
  const { created_at: createdAt, model } = response;
  return {
    ids: new AnswerIds(requestId),
    createdAt: typeof createdAt === "number" ? createdAt : 0,
    model: typeof model === "string" ? model : "",
    stream: true,
    includeUsage,
    ignored: [],
  };
}

/** Every event of a response's stream, numbered. */
function responseEvents(response: JsonObject): JsonObject[] {
  const begun = { ...response, status: "in_progress", output: [], usage: null, completed_at: null };
  const output: unknown[] = Array.isArray(response["output"]) ? response["output"] : [];
  const isWhole = response["status"] === "completed";
  return [
    { type: "response.created", response: begun },
    { type: "response.in_progress", response: begun },
    ...output.filter(isObject).flatMap(itemEvents),
    { type: isWhole ? "response.completed" : "response.incomplete", response },
  ].map((event, index) => ({ ...event, sequence_number: index }));
}

function itemEvents(item: JsonObject, output_index: number): JsonObject[] {
  const place = { item_id: item["id"], output_index };
  const { content, summary, arguments: args, input } = item;
  const isCall = typeof args === "string" || typeof input === "string";
  const empty = {
    ...(Array.isArray(content) ? { content: [] } : {}),
    ...(Array.isArray(summary) ? { summary: [] } : {}),
    ...(typeof args === "string" ? { arguments: "" } : {}),
    ...(typeof input === "string" ? { input: "" } : {}),
  };
  return [
    { type: "response.output_item.added", output_index, item: { ...item, ...empty, status: "in_progress" } },
    ...partsEvents(summary, "summary_index", place),
    ...partsEvents(content, "content_index", place),
    ...(isCall ? callEvents(item, place) : []),
    { type: "response.output_item.done", output_index, item },
  ];
}

/** By a part's type: the names of its events, and the field that grows. */
const PARTS: Readonly<Record<string, { readonly part: string; readonly text: string; readonly field: string }>> = {
  output_text: { part: "response.content_part", text: "response.output_text", field: "text" },
  refusal: { part: "response.content_part", text: "response.refusal", field: "refusal" },
  reasoning_text: { part: "response.content_part", text: "response.reasoning_text", field: "text" },
  summary_text: {
    part: "response.reasoning_summary_part",
    text: "response.reasoning_summary_text",
    field: "text",
  },
};

function partsEvents(parts: unknown, indexName: string, itemPlace: JsonObject): JsonObject[] {
  if (!Array.isArray(parts)) return [];
  return parts.filter(isObject).flatMap((part, index) => {
    const names = PARTS[String(part["type"])];
    if (names === undefined) return [];
    const place = { ...itemPlace, [indexName]: index };
    const text = part[names.field];
    const logprobs = names.text === "response.output_text" ? { logprobs: [] } : {};
    return [
      { type: `${names.part}.added`, ...place, part: { ...part, [names.field]: "" } },
      { type: `${names.text}.delta`, ...place, delta: text, ...logprobs },
      { type: `${names.text}.done`, ...place, [names.field]: text, ...logprobs },
      { type: `${names.part}.done`, ...place, part },
    ];
  });
}

function callEvents({ type, name, arguments: args, input }: JsonObject, place: JsonObject): JsonObject[] {
  if (type === "custom_tool_call") {
    return [
      { type: "response.custom_tool_call_input.delta", ...place, delta: input },
      { type: "response.custom_tool_call_input.done", ...place, input },
    ];
  }
  return [
    { type: "response.function_call_arguments.delta", ...place, delta: args },
    { type: "response.function_call_arguments.done", ...place, name, arguments: args },
  ];
}

const frame = (event: JsonObject): string => `event: ${String(event["type"])}\ndata: ${JSON.stringify(event)}\n\n`;
