import { chunk, streamResponses, USAGE, usageChunk } from "@fairlead/dialects/convert/bridge.fixture";
import type { ChatEvent } from "@fairlead/dialects/convert/wire";
import { chatFrame, DONE_FRAME, responseFrame } from "@fairlead/dialects/events/sse";
import fc from "fast-check";
import type { Setting } from "./call-relay.fixture.ts";

/** What tests of converted answers share: an upstream of either dialect, as it writes. */

const CHUNKS = [
  chunk({ role: "assistant", content: "" }),
  chunk({ reasoning_content: "Hm" }),
  chunk({ content: "Hi" }),
  chunk({ content: " ✓🌍" }),
  chunk({ tool_calls: [{ index: 0, id: "a", type: "function", function: { name: "look", arguments: "" } }] }),
  chunk({ tool_calls: [{ index: 0, function: { arguments: '{"city":' } }] }),
  chunk({ tool_calls: [{ index: 0, function: { arguments: '"Paris"}' } }] }),
  chunk({}, "tool_calls"),
  usageChunk,
];

/** The dialects whose calls are converted to each other. */
export type BridgedDialect = "chat" | "responses";

/** One stream as upstreams of either dialect send it, an entry for each event. */
export const UPSTREAM_FRAMES: Readonly<Record<BridgedDialect, readonly string[]>> = {
  chat: [...CHUNKS.map((each) => chatFrame(each as unknown as ChatEvent)), DONE_FRAME],
  responses: streamResponses(CHUNKS).map(responseFrame),
};

/** The event with which the upstream says that it has finished. */
export const FINISHED_AT: Readonly<Record<BridgedDialect, number>> = {
  chat: UPSTREAM_FRAMES.chat.length - 3,
  responses: UPSTREAM_FRAMES.responses.length - 1,
};

/** The same answer whole. */
export const WHOLE: Readonly<Record<BridgedDialect, object>> = {
  chat: {
    id: "c",
    object: "chat.completion",
    created: 1,
    model: "tiny-q4",
    choices: [{ index: 0, message: { role: "assistant", content: "Hi ✓" }, finish_reason: "stop" }],
    usage: USAGE,
  },
  responses: {
    id: "resp_up",
    object: "response",
    model: "tiny-q4",
    status: "completed",
    output: [{ type: "message", id: "m", role: "assistant", content: [{ type: "output_text", text: "Hi ✓" }] }],
    usage: { input_tokens: 11, output_tokens: 7, input_tokens_details: { cached_tokens: 5 } },
  },
};

/** What a caller of each dialect asks, beside `model` and `stream`. */
export const ASKED: Readonly<Record<BridgedDialect, Record<string, unknown>>> = {
  chat: { messages: [{ role: "user", content: "Hi" }] },
  responses: { input: "Hi" },
};

export const OTHER: Readonly<Record<BridgedDialect, BridgedDialect>> = { chat: "responses", responses: "chat" };

/** A call of this dialect, at upstreams that speak only the other one. */
export const bridged = (dialect: BridgedDialect, rest: Setting = {}): Setting => ({
  dialect,
  speaks: OTHER[dialect],
  ...rest,
  body: { ...ASKED[dialect], ...rest.body },
});

/** The data of each event, parsed; an end mark stays a text. */
export function eventsOf(stream: string): unknown[] {
  return stream.split("\n\n").flatMap((frame) => {
    const at = frame.indexOf("data: ");
    if (at === -1) return [];
    const data = frame.slice(at + "data: ".length);
    return [data === "[DONE]" ? data : (JSON.parse(data) as unknown)];
  });
}

/** Bytes cut at any places. */
export const cutAt = (bytes: Buffer, places: readonly number[]): Buffer[] => {
  const sorted = [0, ...places.map((place) => place % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length];
  return sorted.slice(1).map((end, index) => bytes.subarray(sorted[index], end));
};

export const places = fc.array(fc.nat(), { maxLength: 40 });
