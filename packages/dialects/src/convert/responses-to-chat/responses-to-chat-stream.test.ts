import { describe, expect, test } from "vitest";
import { assertChatOrder } from "../../testing/chat-order.ts";
import { CALL, streamChat } from "../bridge.fixture.ts";
import { toResponsesRequest } from "../chat-to-responses/chat-to-responses-request.ts";
import {
  added,
  called,
  completed,
  created,
  delta,
  message,
  patched,
  thought,
  USAGE,
} from "../responses-upstream.fixture.ts";
import type { ChatEvent, JsonObject } from "../wire.ts";
import { toChatCompletion } from "./responses-to-chat-answer.ts";
import { ChatStream } from "./responses-to-chat-stream.ts";

const { context } = toResponsesRequest({ messages: [{ role: "user", content: "Hi" }] }, CALL);

const deltas = (events: readonly ChatEvent[]): JsonObject[] =>
  events.flatMap((event) => ("error" in event ? [] : event.choices.map((choice) => choice.delta as JsonObject)));
const textOf = (events: readonly ChatEvent[], field = "content"): string =>
  deltas(events)
    .map((each) => (typeof each[field] === "string" ? each[field] : ""))
    .join("");
const finishOf = (events: readonly ChatEvent[]) =>
  events.flatMap((event) =>
    "error" in event ? ["error"] : event.choices.flatMap(({ finish_reason: reason }) => reason ?? []),
  );

describe("a responses stream converted to chat completion chunks", () => {
  test("sends the role, then text, then the finish reason, each as soon as it is known", () => {
    const stream = new ChatStream(context);
    expect(stream.push(created)).toMatchObject([
      { model: "box/tiny", choices: [{ delta: { role: "assistant", content: "" }, finish_reason: null }] },
    ]);
    expect(stream.push(added(0, { ...message(""), content: [] }))).toEqual([]);
    expect(stream.push(delta(0, "Hel"))).toMatchObject([{ choices: [{ delta: { content: "Hel" } }] }]);
    expect(stream.push(delta(0, "lo"))).toMatchObject([{ choices: [{ delta: { content: "lo" } }] }]);
    expect(stream.push({ type: "response.output_item.done", output_index: 0, item: message("Hello") })).toEqual([]);
    expect(stream.push(completed([message("Hello")]))).toEqual([
      {
        id: "chatcmpl-01kc3b6q2v8r5x0m7n4t9w1yza",
        object: "chat.completion.chunk",
        created: CALL.createdAt,
        model: "box/tiny",
        choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: "stop" }],
      },
    ]);
    expect(stream.ended).toBe(true);
    expect(stream.end()).toEqual([]);
  });

  test("sends usage last, and null before, only if it was requested", () => {
    const events = [created, completed([message("Hi")])];
    const told = streamChat(events, { stream_options: { include_usage: true } });
    assertChatOrder(told);
    expect(told.slice(0, -1).every((event) => "usage" in event && event.usage === null)).toBe(true);
    expect(told.at(-1)).toMatchObject({
      choices: [],
      usage: {
        prompt_tokens: 11,
        completion_tokens: 7,
        total_tokens: 18,
        prompt_tokens_details: { cached_tokens: 5 },
        completion_tokens_details: { reasoning_tokens: 3 },
      },
    });
    expect(streamChat(events).some((event) => "usage" in event)).toBe(false);
  });

  test("keeps parallel calls separate, and names each once", () => {
    const events = streamChat([
      created,
      added(0, called("a", "")),
      added(1, called("b", "")),
      delta(1, '{"b":', "function_call_arguments"),
      delta(0, "{}", "function_call_arguments"),
      delta(1, "2}", "function_call_arguments"),
      completed([called("a", "{}"), called("b", '{"b":2}')]),
    ]);
    assertChatOrder(events);
    expect(deltas(events).flatMap((each) => each["tool_calls"] ?? [])).toEqual([
      { index: 0, id: "a", type: "function", function: { name: "look", arguments: "" } },
      { index: 1, id: "b", type: "function", function: { name: "look", arguments: "" } },
      { index: 1, function: { arguments: '{"b":' } },
      { index: 0, function: { arguments: "{}" } },
      { index: 1, function: { arguments: "2}" } },
    ]);
    expect(finishOf(events)).toEqual(["tool_calls"]);
  });

  test("converts calls of free-form tools to custom tool calls", () => {
    const events = streamChat([
      created,
      added(0, { ...patched, input: "" }),
      delta(0, "***", "custom_tool_call_input"),
      completed([patched]),
    ]);
    assertChatOrder(events);
    expect(deltas(events).flatMap((each) => each["tool_calls"] ?? [])).toEqual([
      { index: 0, id: "p", type: "custom", custom: { name: "patch", input: "" } },
      { index: 0, custom: { input: "***" } },
    ]);
  });

  test.each([
    [
      "only at the end of the item",
      [
        added(0, { type: "message", id: "msg_1" }),
        { type: "response.output_item.done", output_index: 0, item: message("Hello") },
      ],
    ],
    ["only at the end of the response", []],
    ["in deltas that are incomplete until the end", [added(0, { type: "message", id: "msg_1" }), delta(0, "Hel")]],
    [
      "with changing IDs",
      [
        added(0, { type: "message", id: "x" }),
        { ...delta(0, "Hel"), item_id: "y" },
        { ...delta(0, "lo"), item_id: "z" },
      ],
    ],
    ["without indexes", [{ type: "response.output_text.delta", item_id: "msg_1", delta: "Hello" }]],
    ["without IDs and indexes", [{ type: "response.output_text.delta", delta: "Hello" }]],
    ["without IDs", [{ type: "response.output_text.delta", delta: "Hello", output_index: 0 }]],
  ])("sends text once if the upstream sends it %s", (_what, events) => {
    const told = streamChat([created, ...events, completed([message("Hello")])]);
    assertChatOrder(told);
    expect(textOf(told)).toBe("Hello");
  });

  test("sends arguments once if the upstream sends them only at the end", () => {
    const told = streamChat([created, added(0, called("a", "")), completed([called("a", '{"x":1}')])]);
    assertChatOrder(told);
    expect(deltas(told).flatMap((each) => each["tool_calls"] ?? [])).toEqual([
      { index: 0, id: "a", type: "function", function: { name: "look", arguments: "" } },
      { index: 0, function: { arguments: '{"x":1}' } },
    ]);
  });

  test("sends calls without their own IDs and indexes once (lemonade-sdk/lemonade#3607)", () => {
    const call = (callId: string, args: string) => ({ ...called(callId, args), id: undefined });
    const calls = [call("fc_a", '{"a":1}'), call("fc_b", '{"b":2}')];
    const told = streamChat([
      created,
      { type: "response.output_item.added", item: call("fc_a", "") },
      { type: "response.output_item.added", item: call("fc_b", "") },
      { type: "response.function_call_arguments.delta", item_id: "fc_a", delta: '{"a":1}' },
      ...calls.map((item) => ({ type: "response.output_item.done", item })),
      completed(calls),
    ]);
    assertChatOrder(told);
    expect(deltas(told).flatMap((each) => each["tool_calls"] ?? [])).toEqual([
      { index: 0, id: "fc_a", type: "function", function: { name: "look", arguments: "" } },
      { index: 1, id: "fc_b", type: "function", function: { name: "look", arguments: "" } },
      { index: 0, function: { arguments: '{"a":1}' } },
      { index: 1, function: { arguments: '{"b":2}' } },
    ]);
  });

  test("distinguishes a call from text that has the same index", () => {
    const told = streamChat([
      created,
      added(0, { type: "message", id: "msg_1" }),
      delta(0, "Hi"),
      added(0, called("a", "")),
      delta(0, "{}", "function_call_arguments"),
      completed([message("Hi"), called("a", "{}")]),
    ]);
    assertChatOrder(told);
    expect(textOf(told)).toBe("Hi");
    expect(finishOf(told)).toEqual(["tool_calls"]);
  });

  test.each(["reasoning_summary_text", "reasoning_text", "reasoning"])("converts reasoning from %s", (type) => {
    const told = streamChat([
      created,
      added(0, { type: "reasoning", id: "rs_1", summary: [] }),
      delta(0, "Hm", type),
      completed([thought("Hm")]),
    ]);
    expect(textOf(told, "reasoning_content")).toBe("Hm");
  });

  test("separates paragraphs of reasoning like a non-streaming response", () => {
    const item = {
      type: "reasoning",
      id: "rs_1",
      summary: [
        { type: "summary_text", text: "One." },
        { type: "summary_text", text: "Two." },
      ],
    };
    const told = streamChat([
      created,
      { ...delta(0, "One.", "reasoning_summary_text"), summary_index: 0, content_index: undefined },
      { ...delta(0, "Two.", "reasoning_summary_text"), summary_index: 1, content_index: undefined },
      completed([item]),
    ]);
    expect(textOf(told, "reasoning_content")).toBe("One.\n\nTwo.");
    expect(
      toChatCompletion({ output: [item], status: "completed" }, context).choices[0]?.message.reasoning_content,
    ).toBe("One.\n\nTwo.");
  });

  test("converts refusals, citations and log probabilities", () => {
    const logprobs = [{ token: "Hi", logprob: -0.1, bytes: [], top_logprobs: [] }];
    const annotation = { type: "url_citation", url: "https://a.example", title: "A", start_index: 0, end_index: 2 };
    const told = streamChat([
      created,
      { ...delta(0, "Hi"), logprobs },
      {
        type: "response.output_text.annotation.added",
        output_index: 0,
        item_id: "msg_1",
        content_index: 0,
        annotation_index: 0,
        annotation,
      },
      { ...delta(0, "No.", "refusal"), content_index: 1 },
      completed([
        {
          ...message("Hi", { annotations: [annotation], logprobs }),
          content: [
            ...message("Hi", { annotations: [annotation], logprobs }).content,
            { type: "refusal", refusal: "No." },
          ],
        },
      ]),
    ]);
    assertChatOrder(told);
    const { type, ...url_citation } = annotation;
    expect(deltas(told)).toEqual([
      { role: "assistant", content: "" },
      { content: "Hi" },
      { annotations: [{ type, url_citation }] },
      { refusal: "No." },
      {},
    ]);
    expect(told[1]).toMatchObject({
      choices: [{ logprobs: { content: [{ token: "Hi", bytes: null }], refusal: null } }],
    });
  });

  test.each([
    ["max_output_tokens", "length"],
    ["content_filter", "content_filter"],
    ["of another kind", "length"],
  ])("has a finish reason if the upstream stopped early (%s)", (reason, finish) => {
    const response = { status: "incomplete", incomplete_details: { reason }, output: [message("Half")], usage: USAGE };
    const told = streamChat([created, { type: "response.incomplete", response }]);
    assertChatOrder(told);
    expect(finishOf(told)).toEqual([finish]);
  });

  test("skips events of hosted tools and unknown events", () => {
    const told = streamChat([
      created,
      { type: "keepalive" },
      added(0, { type: "web_search_call", id: "ws_1" }),
      { type: "response.web_search_call.searching", output_index: 0, item_id: "ws_1" },
      completed([{ type: "web_search_call", id: "ws_1" }, message("Hi")]),
    ]);
    assertChatOrder(told);
    expect(textOf(told)).toBe("Hi");
    expect(finishOf(told)).toEqual(["stop"]);
  });
});
