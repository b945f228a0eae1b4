import type { BridgeCall } from "./bridge-call.ts";
import { toResponse } from "./chat-to-responses/chat-to-responses-answer.ts";
import { toResponsesRequest } from "./chat-to-responses/chat-to-responses-request.ts";
import { ResponsesStream } from "./chat-to-responses/chat-to-responses-stream.ts";
import { toChatRequest } from "./responses-to-chat/responses-to-chat-request.ts";
import { ChatStream } from "./responses-to-chat/responses-to-chat-stream.ts";
import type { ChatEvent, JsonObject, ResponseEvent, ResponseObject } from "./wire.ts";

/** What tests of the bridge share: one call, and upstreams that are lists. */

export const CALL: BridgeCall = {
  id: "req_01kc3b6q2v8r5x0m7n4t9w1yza",
  createdAt: 1_800_000_000,
  model: "tiny",
  calledModel: "box/tiny",
};

type Chunk = JsonObject;

/** A chunk with one delta. */
export const chunk = (delta: JsonObject, finish: string | null = null, rest: JsonObject = {}): Chunk => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  created: 1_700_000_000,
  model: "tiny-q4",
  choices: [{ index: 0, delta, finish_reason: finish }],
  ...rest,
});

/** A piece of a tool call; a name and an id begin one. */
export const callChunk = (index: number, args: string, begin: { id?: string; name?: string } = {}): Chunk => {
  const called = { ...(begin.name === undefined ? {} : { name: begin.name }), arguments: args };
  return chunk({
    tool_calls: [{ index, ...(begin.id === undefined ? {} : { id: begin.id, type: "function" }), function: called }],
  });
};

export const USAGE = {
  prompt_tokens: 11,
  completion_tokens: 7,
  total_tokens: 18,
  prompt_tokens_details: { cached_tokens: 5 },
  completion_tokens_details: { reasoning_tokens: 3 },
};
export const usageChunk: Chunk = { ...chunk({}), choices: [], usage: USAGE };

/** A chat upstream's stream, as `/v1/responses` tells it. */
export function streamResponses(chunks: readonly unknown[], body: JsonObject = {}): ResponseEvent[] {
  const { context } = toChatRequest({ input: "Hi", ...body }, CALL);
  const stream = new ResponsesStream(context);
  return [...chunks.flatMap((each) => stream.push(each)), ...stream.end()];
}

/** A chat upstream's whole answer, as `/v1/responses` tells it. */
export function answerResponses(message: JsonObject, finish: string, rest: JsonObject = {}): ResponseObject {
  const { body, ...answer } = rest;
  const { context } = toChatRequest({ input: "Hi", ...(body as JsonObject) }, CALL);
  const choices = [
    {
      index: 0,
      message: { role: "assistant", ...message },
      finish_reason: finish,
      ...(answer["choice"] as JsonObject),
    },
  ];
  return toResponse({ id: "x", object: "chat.completion", created: 1, model: "tiny-q4", ...answer, choices }, context);
}

/** A responses upstream's stream, as `/v1/chat/completions` tells it. */
export function streamChat(events: readonly unknown[], body: JsonObject = {}): ChatEvent[] {
  const { context } = toResponsesRequest({ messages: [{ role: "user", content: "Hi" }], stream: true, ...body }, CALL);
  const stream = new ChatStream(context);
  return [...events.flatMap((each) => stream.push(each)), ...stream.end()];
}

/** The response that a stream ended with. */
export function lastResponse(events: readonly ResponseEvent[]): ResponseObject {
  const last = events.at(-1);
  if (last && "response" in last) return last.response;
  throw new Error(`The stream ended with ${last?.type}`);
}

export const typesOf = (events: readonly { readonly type: string }[]): string[] => events.map(({ type }) => type);
