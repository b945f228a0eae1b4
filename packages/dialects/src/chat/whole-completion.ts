import { noResponse } from "../calls/relayed-answer.ts";
import type { JsonObject } from "../convert/wire.ts";
import { DONE_FRAME } from "../events/sse.ts";
import { isObject } from "../json/parse.ts";

/** Repeats all fields except the choices in every chunk, as streaming upstreams do. */
export function completionAsStream(completion: JsonObject, hidesUsage: boolean): string {
  const { choices, usage, ...head } = completion;
  if (!Array.isArray(choices)) throw noResponse("returned JSON that is not a chat completion");
  const common = { ...head, object: "chat.completion.chunk" };
  const chunks = choices.filter(isObject).flatMap((choice, at) => choiceChunks(choice, at));
  const told = hidesUsage || !isObject(usage) ? [] : [{ choices: [], usage }];
  return [...chunks, ...told].map((chunk) => dataFrame({ ...common, ...chunk })).join("") + DONE_FRAME;
}

/** The whole message, then the finish reason. */
function choiceChunks(choice: JsonObject, at: number): JsonObject[] {
  const { message, finish_reason = null, index = at, logprobs = null } = choice;
  const delta = isObject(message) ? deltaOf(message) : {};
  return [
    { choices: [{ index, delta: { role: "assistant", ...delta }, logprobs, finish_reason: null }] },
    { choices: [{ index, delta: {}, logprobs: null, finish_reason }] },
  ];
}

/** In a delta, tool calls need an index. */
function deltaOf(message: JsonObject): JsonObject {
  const { tool_calls: calls } = message;
  if (!Array.isArray(calls)) return message;
  return { ...message, tool_calls: calls.filter(isObject).map((call, index) => ({ index, ...call })) };
}

const dataFrame = (value: JsonObject): string => `data: ${JSON.stringify(value)}\n\n`;
