import { describe, expect, test } from "vitest";
import { openResponse } from "../../testing/open-responses.ts";
import { assertResponsesOrder } from "../../testing/responses-order.ts";
import {
  CALL,
  callChunk,
  chunk,
  lastResponse,
  streamResponses,
  typesOf,
  USAGE,
  usageChunk,
} from "../bridge.fixture.ts";
import { toChatRequest } from "../responses-to-chat/responses-to-chat-request.ts";
import { ResponsesStream } from "./chat-to-responses-stream.ts";

const { context } = toChatRequest({ input: "Hi" }, CALL);

describe("a chat stream converted to a response", () => {
  test("sends text from the first chunk on, event by event", () => {
    const stream = new ResponsesStream(context);
    expect(typesOf(stream.push(chunk({ role: "assistant", content: "" })))).toEqual([
      "response.created",
      "response.in_progress",
    ]);
    expect(typesOf(stream.push(chunk({ content: "Hel" })))).toEqual([
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.delta",
    ]);
    expect(typesOf(stream.push(chunk({ content: "lo" })))).toEqual(["response.output_text.delta"]);
    expect(stream.push(chunk({}, "stop"))).toEqual([]);
    expect(stream.push(usageChunk)).toEqual([]);
    expect(stream.ended).toBe(false);
    const last = stream.end();
    expect(typesOf(last)).toEqual([
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.completed",
    ]);
    expect(stream.ended).toBe(true);
    expect(lastResponse(last)).toMatchObject({
      id: "resp_01kc3b6q2v8r5x0m7n4t9w1yza",
      created_at: CALL.createdAt,
      status: "completed",
      model: "box/tiny",
      output: [{ type: "message", content: [{ type: "output_text", text: "Hello", annotations: [], logprobs: [] }] }],
      usage: {
        input_tokens: 11,
        input_tokens_details: { cached_tokens: 5, cache_write_tokens: 0 },
        output_tokens: 7,
        output_tokens_details: { reasoning_tokens: 3 },
        total_tokens: 18,
      },
    });
  });

  test("sends reasoning as a summary before the message, under either field name that engines use", () => {
    for (const name of ["reasoning_content", "reasoning"]) {
      const events = streamResponses([
        chunk({ [name]: "Hm, " }),
        chunk({ [name]: "yes" }),
        chunk({ content: "Yes" }),
        chunk({}, "stop"),
      ]);
      assertResponsesOrder(events);
      expect(lastResponse(events).output).toMatchObject([
        { type: "reasoning", summary: [{ type: "summary_text", text: "Hm, yes" }], status: "completed" },
        { type: "message", content: [{ text: "Yes" }] },
      ]);
    }
  });

  test("sends reasoning once if an engine sends it under both names", () => {
    const events = streamResponses([
      chunk({ reasoning: "Hm", reasoning_content: "Hm" }),
      chunk({ content: "x" }, "stop"),
    ]);
    expect(lastResponse(events).output[0]).toMatchObject({ summary: [{ text: "Hm" }] });
  });

  test("reads reasoning and text from a list of parts", () => {
    const content = [
      { type: "thinking", thinking: [{ type: "text", text: "Hm" }] },
      { type: "text", text: "Yes" },
    ];
    const { output } = lastResponse(streamResponses([chunk({ content }, "stop")]));
    expect(output).toMatchObject([{ summary: [{ text: "Hm" }] }, { content: [{ text: "Yes" }] }]);
  });

  test("separates parallel calls by index, with one item each, and begins with index 0", () => {
    const events = streamResponses([
      callChunk(0, "", { id: "call_a", name: "look" }),
      callChunk(0, '{"a":'),
      callChunk(1, '{"b":', { id: "call_b", name: "find" }),
      callChunk(0, "1}"),
      callChunk(1, "2}"),
      chunk({}, "tool_calls"),
    ]);
    assertResponsesOrder(events);
    expect(lastResponse(events).output).toEqual([
      {
        type: "function_call",
        id: "fc_01kc3b6q2v8r5x0m7n4t9w1yza_0",
        call_id: "call_a",
        name: "look",
        arguments: '{"a":1}',
        status: "completed",
      },
      {
        type: "function_call",
        id: "fc_01kc3b6q2v8r5x0m7n4t9w1yza_1",
        call_id: "call_b",
        name: "find",
        arguments: '{"b":2}',
        status: "completed",
      },
    ]);
    expect(lastResponse(events).status).toBe("completed");
  });

  test.each([
    ["no index", [null, null, null, null]],
    ["index 0 for every call", [0, 0, 0, 0]],
  ])("separates calls that have %s", (_what, [a, b, c, d]) => {
    const piece = (index: number | null | undefined, rest: object) =>
      chunk({ tool_calls: [{ ...(index === null ? {} : { index }), ...rest }] });
    const events = streamResponses([
      piece(a, { id: "call_a", function: { name: "look", arguments: "" } }),
      piece(b, { function: { arguments: "{}" } }),
      piece(c, { id: "call_b", function: { name: "look", arguments: "" } }),
      piece(d, { function: { arguments: '{"x":1}' } }),
      chunk({}, "tool_calls"),
    ]);
    assertResponsesOrder(events);
    expect(lastResponse(events).output).toMatchObject([
      { call_id: "call_a", arguments: "{}" },
      { call_id: "call_b", arguments: '{"x":1}' },
    ]);
  });

  test("treats pieces with new IDs but the same index as one call", () => {
    const piece = (id: string, rest: object) => chunk({ tool_calls: [{ index: 0, id, function: rest }] });
    const events = streamResponses([
      piece("a", { name: "look", arguments: "{" }),
      piece("b", { arguments: "}" }),
      chunk({}, "tool_calls"),
    ]);
    expect(lastResponse(events).output).toMatchObject([{ call_id: "a", arguments: "{}" }]);
  });

  test("holds back a call until its name is known", () => {
    const events = streamResponses([
      callChunk(0, '{"a"', { id: "call_a" }),
      callChunk(0, ":1}", { name: "look" }),
      chunk({}, "tool_calls"),
    ]);
    assertResponsesOrder(events);
    expect(lastResponse(events).output).toMatchObject([{ name: "look", arguments: '{"a":1}' }]);
  });

  test("generates a call ID if it is missing or duplicated, because results are matched by it", () => {
    const events = streamResponses([
      callChunk(0, "{}", { name: "look" }),
      callChunk(1, "{}", { id: "same", name: "look" }),
      callChunk(2, "{}", { id: "same", name: "look" }),
      chunk({}, "tool_calls"),
    ]);
    const ids = lastResponse(events).output.map((item) => ("call_id" in item ? item.call_id : null));
    expect(ids[1]).toBe("same");
    expect(new Set(ids).size).toBe(3);
    expect(ids).not.toContain("");
  });

  test("sends {} as the arguments of a call without any, and object arguments as a string", () => {
    const events = streamResponses([
      callChunk(0, "", { id: "a", name: "now" }),
      chunk({ tool_calls: [{ index: 1, id: "b", function: { name: "look", arguments: { city: "Paris" } } }] }),
      chunk({}, "tool_calls"),
    ]);
    assertResponsesOrder(events);
    expect(lastResponse(events).output).toMatchObject([{ arguments: "{}" }, { arguments: '{"city":"Paris"}' }]);
  });

  test("closes the message before calls begin, and opens another for text after them", () => {
    const events = streamResponses([
      chunk({ content: "Looking" }),
      callChunk(0, "{}", { id: "a", name: "look" }),
      chunk({ content: "Done" }),
      chunk({}, "tool_calls"),
    ]);
    assertResponsesOrder(events);
    expect(lastResponse(events).output.map(({ type }) => type)).toEqual(["message", "function_call", "message"]);
  });

  test("sends a refusal as a separate part", () => {
    const events = streamResponses([
      chunk({ content: "Well. " }),
      chunk({ refusal: "I can" }),
      chunk({ refusal: "not." }),
      chunk({}, "stop"),
    ]);
    assertResponsesOrder(events);
    expect(lastResponse(events).output).toMatchObject([
      {
        content: [
          { type: "output_text", text: "Well. " },
          { type: "refusal", refusal: "I cannot." },
        ],
      },
    ]);
  });

  test("includes log probabilities in deltas and in the part", () => {
    const content = [
      { token: "Hi", logprob: -0.1, bytes: null, top_logprobs: [{ token: "Hi", logprob: -0.1, bytes: [72, 105] }] },
    ];
    const told = [
      { token: "Hi", logprob: -0.1, bytes: [], top_logprobs: [{ token: "Hi", logprob: -0.1, bytes: [72, 105] }] },
    ];
    const choices = [
      { index: 0, delta: { content: "Hi" }, finish_reason: "stop", logprobs: { content, refusal: null } },
    ];
    const events = streamResponses([{ ...chunk({}), choices }]);
    assertResponsesOrder(events);
    expect(events.find(({ type }) => type === "response.output_text.delta")).toMatchObject({ logprobs: told });
    expect(lastResponse(events).output).toMatchObject([{ content: [{ logprobs: told }] }]);
  });

  test("includes citations", () => {
    const url_citation = { url: "https://a.example", title: "A", start_index: 0, end_index: 2 };
    const annotations = [{ type: "url_citation", url_citation }, { type: "of another kind" }];
    const events = streamResponses([chunk({ content: "Hi" }), chunk({ annotations }), chunk({}, "stop")]);
    assertResponsesOrder(events);
    expect(lastResponse(events).output).toMatchObject([
      { content: [{ annotations: [{ type: "url_citation", ...url_citation }] }] },
    ]);
  });

  test("keeps events in valid order if a citation comes before any text, or after a refusal", () => {
    const url_citation = { url: "https://a.example", title: "A", start_index: 0, end_index: 2 };
    const cited = chunk({ annotations: [{ type: "url_citation", url_citation }] });
    assertResponsesOrder(streamResponses([cited, chunk({ content: "Hi" }), chunk({}, "stop")]));
    assertResponsesOrder(streamResponses([chunk({ refusal: "No." }), cited, chunk({}, "stop")]));
    assertResponsesOrder(streamResponses([callChunk(0, "{}", { id: "a", name: "look" }), cited, chunk({}, "stop")]));
  });

  test("restores the text of a free-form tool call and the name of a namespaced tool", () => {
    const tools = [
      { type: "custom", name: "patch" },
      { type: "namespace", name: "mcp", description: "d", tools: [{ type: "function", name: "read", parameters: {} }] },
    ];
    const chunks = [
      callChunk(0, '{"input":"*** Be', { id: "a", name: "patch" }),
      callChunk(0, 'gin\\n"}'),
      callChunk(1, "{}", { id: "b", name: "mcp__read" }),
      chunk({}, "tool_calls"),
    ];
    const events = streamResponses(chunks, { tools });
    assertResponsesOrder(events);
    const deltas = events.flatMap((event) =>
      event.type === "response.custom_tool_call_input.delta" ? [event.delta] : [],
    );
    expect(deltas).toEqual(["*** Be", "gin\n"]);
    expect(lastResponse(events).output).toMatchObject([
      { type: "custom_tool_call", name: "patch", input: "*** Begin\n", call_id: "a", status: "completed" },
      { type: "function_call", name: "read", namespace: "mcp", arguments: "{}", call_id: "b" },
    ]);
  });

  test.each([
    ["length", "max_output_tokens"],
    ["content_filter", "content_filter"],
  ])("is incomplete, as is only its last item, if the upstream finished with %s", (finish, reason) => {
    const events = streamResponses([
      chunk({ reasoning_content: "Hm" }),
      chunk({ content: "Half a" }),
      chunk({}, finish),
      usageChunk,
    ]);
    assertResponsesOrder(events);
    expect(events.at(-1)).toMatchObject({
      type: "response.incomplete",
      response: { status: "incomplete", incomplete_details: { reason }, error: null, usage: { total_tokens: 18 } },
    });
    expect(lastResponse(events).output).toMatchObject([{ status: "completed" }, { status: "incomplete" }]);
  });

  test("has an empty message if the upstream generated nothing, so that agents do not retry", () => {
    const events = streamResponses([chunk({ role: "assistant", content: "" }), chunk({}, "stop")]);
    assertResponsesOrder(events);
    expect(lastResponse(events).output).toMatchObject([{ type: "message", content: [{ text: "" }] }]);
  });

  test("has zero usage if the upstream reported none", () => {
    const { usage } = lastResponse(streamResponses([chunk({ content: "x" }, "stop")]));
    expect(usage).toMatchObject({ input_tokens: 0, output_tokens: 0, total_tokens: 0 });
  });

  test("has the usage that the upstream reported last, in any chunk", () => {
    const events = streamResponses([
      chunk({ content: "x" }, null, { usage: { prompt_tokens: 1, completion_tokens: 1 } }),
      chunk({}, "stop", { usage: USAGE }),
      chunk({}, null, { usage: null, choices: [] }),
    ]);
    expect(lastResponse(events).usage).toMatchObject({ total_tokens: 18 });
  });

  test("passes upstream-specific fields, which cannot override fields of the response", () => {
    const events = streamResponses([
      chunk({ content: "x" }, null, { timings: { ms: 5 }, status: "failed", output: [] }),
      chunk({}, "stop"),
    ]);
    expect(lastResponse(events)).toMatchObject({
      timings: { ms: 5 },
      status: "completed",
      output: [{ type: "message" }],
    });
  });

  test("skips chunks without choices, and all choices but the first", () => {
    const other = { ...chunk({}), choices: [{ index: 1, delta: { content: "other" }, finish_reason: "stop" }] };
    const events = streamResponses([{}, { choices: null }, chunk({ content: "x" }), other, chunk({}, "stop")]);
    assertResponsesOrder(events);
    expect(lastResponse(events).output).toMatchObject([{ content: [{ text: "x" }] }]);
  });

  test("has every field of Open Responses in every response object", () => {
    const events = streamResponses([chunk({ content: "x" }, "stop")], {
      tools: [{ type: "function", name: "f" }],
      temperature: null,
    });
    const responses = events.flatMap((event) => ("response" in event ? [event.response] : []));
    expect(responses).toHaveLength(3);
    for (const response of responses) expect(() => openResponse.parse(response)).not.toThrow();
  });
});
