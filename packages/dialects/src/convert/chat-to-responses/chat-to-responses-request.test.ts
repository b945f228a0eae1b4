import { describe, expect, test } from "vitest";
import { parseExact } from "../../json/exact-json.ts";
import { CALL } from "../bridge.fixture.ts";
import type { JsonObject } from "../wire.ts";
import { toResponsesRequest } from "./chat-to-responses-request.ts";

const HI = [{ role: "user", content: "Hi" }];
const convert = (body: JsonObject) => toResponsesRequest({ messages: HI, ...body }, CALL).request;
const inputOf = (messages: unknown) => convert({ messages }).input;
const fn = (name: string, rest: object = {}) => ({ type: "function", function: { name, ...rest } });
const flat = (name: string, rest: object = {}) => ({ type: "function", name, ...rest });

describe("a chat request for a responses upstream", () => {
  test("becomes a single message that is not stored, without extra fields", () => {
    expect(convert({})).toEqual({
      model: "tiny",
      store: false,
      input: [{ type: "message", role: "user", content: "Hi" }],
    });
  });

  test("passes fields of both dialects and fields without a counterpart unchanged", () => {
    const same = {
      temperature: 0.5,
      metadata: { a: "b" },
      parallel_tool_calls: false,
      stop: ["\n"],
      seed: 7,
      logit_bias: { "5": 1 },
      top_k: null,
    };
    expect(convert(same)).toMatchObject(same);
  });

  test("preserves every number exactly", () => {
    const text = '{"messages":[{"role":"user","content":"Hi"}],"seed":9223372036854775807}';
    expect(JSON.stringify(toResponsesRequest(parseExact(text), CALL).request)).toContain('"seed":9223372036854775807');
  });

  test("reads the output limit from either field, preferring the newer one", () => {
    expect(convert({ max_tokens: 5 })).toMatchObject({ max_output_tokens: 5 });
    const both = convert({ max_tokens: 5, max_completion_tokens: 6 });
    expect(both).toMatchObject({ max_output_tokens: 6 });
    expect(both).not.toHaveProperty("max_tokens");
  });

  test("requests the format, verbosity, effort and log probabilities", () => {
    const json_schema = { name: "n", schema: { type: "object" }, strict: true };
    expect(
      convert({
        response_format: { type: "json_schema", json_schema },
        verbosity: "low",
        reasoning_effort: "high",
        logprobs: true,
        top_logprobs: 2,
      }),
    ).toEqual({
      ...convert({}),
      text: { format: { type: "json_schema", ...json_schema }, verbosity: "low" },
      reasoning: { effort: "high" },
      include: ["message.output_text.logprobs"],
      top_logprobs: 2,
    });
    expect(convert({ logprobs: false, top_logprobs: 0 })).toEqual(convert({}));
  });

  test("streams without `include_usage`, because the bridge reports usage itself", () => {
    const body = { messages: HI, stream: true, stream_options: { include_usage: true, include_obfuscation: false } };
    const { request, context } = toResponsesRequest(body, CALL);
    expect(request).toMatchObject({ stream: true, stream_options: { include_obfuscation: false } });
    expect(request.stream_options).not.toHaveProperty("include_usage");
    expect(context).toMatchObject({ stream: true, includeUsage: true });
    expect(convert({ stream: true, stream_options: { include_usage: true } })).not.toHaveProperty("stream_options");
  });

  test("is stored only if `store` is true", () => {
    expect(convert({ store: true }).store).toBe(true);
    expect(convert({ store: null }).store).toBe(false);
  });

  test("has tools in the flat form, never stricter than submitted", () => {
    const grammar = { syntax: "lark", definition: "start: WORD" };
    const tools = [
      fn("a", { description: "d", parameters: { type: "object" } }),
      fn("b", { strict: true }),
      { type: "custom", custom: { name: "c", format: { type: "grammar", grammar } } },
    ];
    expect(convert({ tools, tool_choice: "required" })).toMatchObject({
      tools: [
        flat("a", { description: "d", parameters: { type: "object" }, strict: false }),
        flat("b", { parameters: { type: "object", properties: {} }, strict: true }),
        { type: "custom", name: "c", format: { type: "grammar", ...grammar } },
      ],
      tool_choice: "required",
    });
  });

  test.each([
    ["none", "none"],
    [fn("a"), flat("a")],
    [
      { type: "custom", custom: { name: "c" } },
      { type: "custom", name: "c" },
    ],
    [
      { type: "allowed_tools", allowed_tools: { mode: "auto", tools: [fn("a")] } },
      { type: "allowed_tools", mode: "auto", tools: [flat("a")] },
    ],
  ])("converts the tool choice %j", (tool_choice, expected) => {
    expect(convert({ tools: [fn("a")], tool_choice }).tool_choice).toEqual(expected);
  });

  test("converts web search options to the web search tool", () => {
    const web_search_options = {
      search_context_size: "low",
      user_location: { type: "approximate", approximate: { city: "Paris" } },
    };
    expect(convert({ web_search_options }).tools).toEqual([
      { type: "web_search", search_context_size: "low", user_location: { type: "approximate", city: "Paris" } },
    ]);
  });

  test.each([
    ["n", { n: 2 }],
    ["modalities", { modalities: ["text", "audio"] }],
    ["audio", { audio: { voice: "alloy", format: "wav" } }],
    ["functions", { functions: [{ name: "f" }] }],
    ["function_call", { function_call: "auto" }],
    ["messages", { messages: [] }],
    ["messages", { messages: null }],
    ["tools[0].function", { tools: [flat("a")] }],
    ["tools[0].type", { tools: [{ type: "web_search" }] }],
    ["tool_choice.function", { tools: [fn("a")], tool_choice: flat("a") }],
    ["stream", { stream: 1 }],
  ])("is rejected because of its %s", (param, body) => {
    expect(() => convert(body)).toThrow(
      expect.objectContaining({ code: "invalid_request", param: expect.stringContaining(param) }),
    );
  });

  test("is accepted with explicit default values", () => {
    expect(convert({ n: 1, modalities: ["text"], audio: null, functions: null, tools: [] })).toEqual(convert({}));
  });
});

describe("messages as the input", () => {
  test("become one item each, with calls after the text of their turn", () => {
    const messages = [
      { role: "system", content: "Be brief" },
      { role: "developer", content: [{ type: "text", text: "Really" }] },
      { role: "user", content: "Weather?" },
      {
        role: "assistant",
        content: [
          { type: "text", text: "Look" },
          { type: "text", text: "ing" },
        ],
        tool_calls: [
          { id: "a", type: "function", function: { name: "look", arguments: "{}" } },
          { id: "b", type: "custom", custom: { name: "patch", input: "x" } },
        ],
      },
      { role: "tool", tool_call_id: "a", content: "sun" },
      { role: "tool", tool_call_id: "b", content: [{ type: "text", text: "ok" }] },
      { role: "assistant", content: "Sun" },
    ];
    expect(inputOf(messages)).toEqual([
      { type: "message", role: "system", content: "Be brief" },
      { type: "message", role: "developer", content: [{ type: "input_text", text: "Really" }] },
      { type: "message", role: "user", content: "Weather?" },
      { type: "message", role: "assistant", content: "Looking" },
      { type: "function_call", call_id: "a", name: "look", arguments: "{}" },
      { type: "custom_tool_call", call_id: "b", name: "patch", input: "x" },
      { type: "function_call_output", call_id: "a", output: "sun" },
      { type: "custom_tool_call_output", call_id: "b", output: [{ type: "input_text", text: "ok" }] },
      { type: "message", role: "assistant", content: "Sun" },
    ]);
  });

  test("keep their content parts", () => {
    const content = [
      { type: "text", text: "See" },
      { type: "image_url", image_url: { url: "https://a.example/a.png" } },
      { type: "image_url", image_url: { url: "https://a.example/b.png", detail: "high" } },
      { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,AA==" } },
      { type: "input_audio", input_audio: { data: "AA==", format: "wav" } },
    ];
    expect(inputOf([{ role: "user", content }])).toEqual([
      {
        type: "message",
        role: "user",
        content: [
          { type: "input_text", text: "See" },
          { type: "input_image", image_url: "https://a.example/a.png", detail: "auto" },
          { type: "input_image", image_url: "https://a.example/b.png", detail: "high" },
          { type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,AA==" },
          { type: "input_audio", input_audio: { data: "AA==", format: "wav" } },
        ],
      },
    ]);
  });

  test("keep refusals as refusals", () => {
    for (const refusal of [{ content: null, refusal: "No." }, { content: [{ type: "refusal", refusal: "No." }] }]) {
      expect(inputOf([{ role: "assistant", ...refusal }])).toMatchObject([
        { type: "message", role: "assistant", status: "completed", content: [{ type: "refusal", refusal: "No." }] },
      ]);
    }
  });

  test("drop fields without a counterpart, and list them", () => {
    const messages = [
      { role: "user", name: "ann", content: "Hi" },
      { role: "assistant", content: "", reasoning_content: "Hm" },
    ];
    const { request, context } = toResponsesRequest({ messages }, CALL);
    expect(request.input).toEqual([{ type: "message", role: "user", content: "Hi" }]);
    expect(context.ignored).toEqual(["messages[0].name", "messages[1].reasoning_content"]);
  });

  test.each([
    ["messages[0].role", [{ role: "function", name: "f", content: "x" }]],
    ["messages[0].content", [{ role: "user" }]],
    ["messages[0].tool_call_id", [{ role: "tool", content: "x" }]],
    [
      "messages[0].function_call",
      [{ role: "assistant", content: null, function_call: { name: "f", arguments: "{}" } }],
    ],
    [
      "messages[0].tool_calls[0].function.arguments",
      [{ role: "assistant", tool_calls: [{ id: "a", type: "function", function: { name: "f", arguments: {} } }] }],
    ],
    ["messages[1]", [HI[0], "text"]],
  ])("are rejected at %s", (param, messages) => {
    expect(() => inputOf(messages)).toThrow(expect.objectContaining({ code: "invalid_request", param }));
  });
});
