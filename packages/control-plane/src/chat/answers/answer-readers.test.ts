import { callChunk, chunk, streamResponses, usageChunk } from "@fairlead/dialects/convert/bridge.fixture";
import type { ChatEvent, JsonObject } from "@fairlead/dialects/convert/wire";
import { readAnswerEvent } from "@fairlead/dialects/events/answer-event";
import { chatFrame, DONE_FRAME, responseFrame } from "@fairlead/dialects/events/sse";
import { chatOrderProblems } from "@fairlead/dialects/testing/chat-order";
import { responsesOrderProblems } from "@fairlead/dialects/testing/responses-order";
import { eventsOf } from "@fairlead/inference/relay/bridged.fixture";
import { DomainError } from "@fairlead/protocol/errors";
import { describe, expect, test } from "vitest";
import type { AnswerReader, ReadCall } from "./answer-reader.ts";
import { ChatReader } from "./chat-reader.ts";
import { ResponsesReader } from "./responses-reader.ts";

const CALL: ReadCall = {
  requestId: "req_01kc3b6q2v8r5x0m7n4t9w1yza",
  model: "n/tiny",
  createdAt: 1_800_000_000,
  metadata: { session_id: "ses_1" },
  body: {},
};
const USED = { inputTokens: 11, cachedInputTokens: 0, outputTokens: 2, reasoningTokens: 0 };
const CHUNKS = [
  chunk({ role: "assistant", content: "" }),
  chunk({ reasoning_content: "Hm" }),
  chunk({ content: "Look" }),
  chunk({ content: "ing ✓" }),
  callChunk(0, "", { id: "a", name: "look" }),
  callChunk(0, '{"city":"Paris"}'),
  chunk({}, "tool_calls"),
  usageChunk,
];
const FRAMES = {
  responses: [...streamResponses(CHUNKS).map(responseFrame), DONE_FRAME],
  chat: [...CHUNKS.map((each) => chatFrame(each as unknown as ChatEvent)), DONE_FRAME],
};

/** @returns what the caller would see, and what waits for the commit. */
function read(reader: AnswerReader, frames: readonly string[]): { sent: string; held: string } {
  let sent = "";
  let held = "";
  for (const frame of frames) {
    const taken = reader.take(readAnswerEvent(Buffer.from(frame)));
    if (taken === "hide") continue;
    const text = typeof taken === "object" ? taken.frame : frame;
    if (held !== "" || taken === "hold" || (typeof taken === "object" && taken.hold)) held += text;
    else sent += text;
  }
  return { sent, held };
}

const typesIn = (items: readonly JsonObject[]): unknown[] => items.map(({ type }) => type);

describe.each([
  ["responses", (call: ReadCall) => new ResponsesReader(call)],
  ["chat", (call: ReadCall) => new ChatReader(call)],
] as const)("%s", (dialect, make) => {
  test("keeps a complete response as its items", () => {
    const reader = make(CALL);
    read(reader, FRAMES[dialect]);
    const items = reader.items();
    expect(reader.finished).toBe(true);
    expect(typesIn(items)).toEqual(["reasoning", "message", "function_call"]);
    expect(items[1]).toMatchObject({ role: "assistant", status: "completed", content: [{ text: "Looking ✓" }] });
    expect(items[2]).toMatchObject({ call_id: "a", name: "look", arguments: '{"city":"Paris"}' });
    expect(reader.response).toMatchObject({ status: "completed", metadata: { session_id: "ses_1" } });
  });

  test("sends no end of a response before it is committed", () => {
    const { sent, held } = read(make(CALL), FRAMES[dialect]);
    expect(sent).not.toMatch(/\[DONE\]|response\.completed|"finish_reason":"tool_calls"/);
    expect(held).toContain("[DONE]");
  });

  test("keeps the text sent so far exactly once, wherever a response is cut", () => {
    for (let at = 0; at <= FRAMES[dialect].length; at++) {
      const reader = make(CALL);
      const { sent } = read(reader, FRAMES[dialect].slice(0, at));
      const texts = reader.items().flatMap(({ content }) => (content as { text: string }[] | undefined) ?? []);
      const said = eventsOf(sent)
        .flatMap((event) => saidIn(event))
        .join("");
      expect(texts.map(({ text }) => text).join(""), `cut at ${at}`).toBe(said);
    }
  });

  test("ends the stream in order, wherever a response is stopped", () => {
    for (let at = 0; at < FRAMES[dialect].length; at++) {
      const reader = make(CALL);
      const { sent } = read(reader, FRAMES[dialect].slice(0, at));
      if (reader.finished) break;
      const events = eventsOf(sent + reader.stopped(USED));
      expect(events.at(-1)).toBe("[DONE]");
      const problems =
        dialect === "responses" ? responsesOrderProblems(events.slice(0, -1)) : chatOrderProblems(events.slice(0, -1));
      expect(problems, `stopped at ${at}`).toEqual([]);
    }
  });

  test("reports a failure if the end could not be stored", () => {
    const reader = make(CALL);
    const { sent } = read(reader, FRAMES[dialect]);
    const events = eventsOf(sent + reader.failed(new DomainError("unavailable", "The store is away.")));
    expect(JSON.stringify(events.at(-1))).toContain("The store is away.");
    expect(events).not.toContain("[DONE]");
  });
});

function saidIn(event: unknown): string[] {
  const { type, delta, choices } = event as {
    type?: string;
    delta?: string;
    choices?: { delta: { content?: string } }[];
  };
  if (type === "response.output_text.delta") return [delta ?? ""];
  return (choices ?? []).map((choice) => choice.delta.content ?? "");
}

test("a chat caller gets the usage chunk only if they requested it", () => {
  const asked = read(new ChatReader({ ...CALL, body: { stream_options: { include_usage: true } } }), FRAMES.chat);
  const unasked = read(new ChatReader(CALL), FRAMES.chat);
  expect(asked.held).toContain('"total_tokens":18');
  expect(unasked.sent + unasked.held).not.toContain('"total_tokens":18');
});

test("an error in the middle of a stream is not an end", () => {
  for (const reader of [new ChatReader(CALL), new ResponsesReader(CALL)]) {
    read(reader, [
      `event: error\ndata: {"type":"error","error":{"code":"insufficient_balance","message":"No money."}}\n\n`,
    ]);
    expect(reader.finished).toBe(false);
    expect(reader.failure).toEqual({ code: "insufficient_balance", message: "No money." });
    expect(reader.lastFrame).toBe("");
  }
});

test("items that an upstream sends only in its last event are kept", () => {
  const reader = new ResponsesReader(CALL);
  const item = { id: "msg_1", type: "message", role: "assistant", content: [{ type: "output_text", text: "Hi" }] };
  const response = { id: "resp_1", status: "completed", output: [item] };
  read(reader, [`data: ${JSON.stringify({ type: "response.completed", response })}\n\n`]);
  expect(reader.items()).toEqual([item]);
});

const frameOf = (event: object): string => `data: ${JSON.stringify(event)}\n\n`;

test("an item whose ID changes from event to event is kept once", () => {
  const reader = new ResponsesReader(CALL);
  const item = (id: string, text: string) => ({
    id,
    type: "message",
    role: "assistant",
    content: text === "" ? [] : [{ type: "output_text", text }],
  });
  const done = item("msg_3", "Hi");
  read(
    reader,
    [
      { type: "response.output_item.added", output_index: 0, item: item("msg_1", "") },
      { type: "response.output_text.delta", output_index: 0, content_index: 0, item_id: "msg_2", delta: "Hi" },
      { type: "response.output_item.done", output_index: 0, item: done },
      { type: "response.completed", response: { id: "resp_1", status: "completed", output: [done] } },
    ].map(frameOf),
  );
  expect(reader.items()).toEqual([done]);
});

test("items that share an index are kept separate, even if one is never finished", () => {
  const reader = new ResponsesReader(CALL);
  const text = { id: "msg_1", type: "message", role: "assistant", content: [] };
  const call = (args: string) => ({ id: "fc_1", type: "function_call", call_id: "a", name: "look", arguments: args });
  read(
    reader,
    [
      { type: "response.output_item.added", output_index: 0, item: text },
      { type: "response.output_text.delta", output_index: 0, item_id: "msg_1", delta: "Hi" },
      { type: "response.output_item.added", output_index: 0, item: call("") },
      { type: "response.output_item.done", output_index: 0, item: call("{}") },
    ].map(frameOf),
  );
  expect(reader.items()).toMatchObject([{ id: "msg_1", content: [{ text: "Hi" }] }, call("{}")]);
});

test("calls without their own IDs and indexes are identified by their call IDs (lemonade-sdk/lemonade#3607)", () => {
  const reader = new ResponsesReader(CALL);
  const call = (call_id: string, args: string) => ({ type: "function_call", call_id, name: "look", arguments: args });
  const calls = [call("fc_a", '{"a":1}'), call("fc_b", '{"b":2}')];
  const frames = [
    { type: "response.output_item.added", item: call("fc_a", "") },
    { type: "response.function_call_arguments.delta", item_id: "fc_a", delta: '{"a":' },
    { type: "response.output_item.added", item: call("fc_b", "") },
    { type: "response.function_call_arguments.delta", item_id: "fc_b", delta: '{"b":2}' },
    { type: "response.function_call_arguments.delta", item_id: "fc_a", delta: "1}" },
    ...calls.map((item) => ({ type: "response.output_item.done", item })),
    { type: "response.completed", response: { id: "resp_1", status: "completed", output: calls } },
  ].map(frameOf);
  read(reader, frames);
  expect(reader.items()).toEqual(calls);
});
