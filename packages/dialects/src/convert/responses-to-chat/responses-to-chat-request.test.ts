import { describe, expect, test } from "vitest";
import { parseExact } from "../../json/exact-json.ts";
import { CALL } from "../bridge.fixture.ts";
import type { ChatQuirks } from "../bridge-call.ts";
import type { JsonObject } from "../wire.ts";
import { toChatRequest } from "./responses-to-chat-request.ts";

const convert = (body: JsonObject, chat: ChatQuirks = {}) =>
  toChatRequest({ input: "Hi", ...body }, { ...CALL, chat }).request;
const messagesOf = (input: unknown, chat: ChatQuirks = {}) => convert({ input }, chat).messages;
const ignoredIn = (body: JsonObject) => toChatRequest({ input: "Hi", ...body }, CALL).context.ignored;
const call = (call_id: string, name = "look") => ({ type: "function_call", call_id, name, arguments: "{}" });
const output = (call_id: string, value: unknown = "sun") => ({ type: "function_call_output", call_id, output: value });
const asked = (id: string, name = "look") => ({ id, type: "function", function: { name, arguments: "{}" } });

describe("a responses request for a chat upstream", () => {
  test("becomes a single user message, without extra fields, if the input is a string", () => {
    expect(convert({})).toEqual({ model: "tiny", messages: [{ role: "user", content: "Hi" }] });
  });

  test("passes fields of both dialects and unknown fields unchanged", () => {
    const same = {
      temperature: 0.5,
      top_p: 0.9,
      metadata: { a: "b" },
      user: "u",
      service_tier: "flex",
      safety_identifier: "s",
      prompt_cache_key: "k",
      chat_template_kwargs: { enable_thinking: false },
      stop: ["\n"],
      seed: 7,
      top_k: null,
    };
    expect(convert(same)).toMatchObject(same);
  });

  test("preserves every number exactly, in schemas and in engine-specific fields", () => {
    const text =
      '{"input":"Hi","seed":9223372036854775807,"tools":[{"type":"function","name":"f","parameters":{"maximum":18446744073709551615}}]}';
    const written = JSON.stringify(toChatRequest(parseExact(text), CALL).request);
    expect(written).toContain('"seed":9223372036854775807');
    expect(written).toContain('"maximum":18446744073709551615');
  });

  test("drops known fields that are null, because many upstreams reject them", () => {
    expect(
      convert({ temperature: null, tools: null, reasoning: null, text: null, max_output_tokens: null, stream: null }),
    ).toEqual(convert({}));
  });

  test("sets the output limit in the field that the upstream supports", () => {
    expect(convert({ max_output_tokens: 50 })).toMatchObject({ max_tokens: 50 });
    const other = convert({ max_output_tokens: 50 }, { outputLimit: "max_completion_tokens" });
    expect(other).toMatchObject({ max_completion_tokens: 50 });
    expect(other).not.toHaveProperty("max_tokens");
  });

  test("requests usage for every stream", () => {
    expect(convert({ stream: true, stream_options: { include_obfuscation: false } })).toMatchObject({
      stream: true,
      stream_options: { include_obfuscation: false, include_usage: true },
    });
    expect(convert({ stream: false })).not.toHaveProperty("stream_options");
  });

  test.each([
    [{ type: "text" }, undefined],
    [{ type: "json_object" }, { type: "json_object" }],
    [
      { type: "json_schema", name: "n", schema: { type: "object" }, strict: true, description: null },
      { type: "json_schema", json_schema: { name: "n", schema: { type: "object" }, strict: true } },
    ],
  ])("requests the format %j", (format, response_format) => {
    expect(convert({ text: { format } }).response_format).toEqual(response_format);
  });

  test("requests verbosity, effort and log probabilities", () => {
    expect(
      convert({
        text: { verbosity: "low" },
        reasoning: { effort: "high", summary: "auto" },
        include: ["reasoning.encrypted_content", "message.output_text.logprobs"],
        top_logprobs: 2,
      }),
    ).toEqual({ ...convert({}), verbosity: "low", reasoning_effort: "high", logprobs: true, top_logprobs: 2 });
    expect(convert({ include: ["reasoning.encrypted_content"] })).toEqual(convert({}));
  });

  test.each([
    ["background", { background: true }],
    ["conversation", { conversation: "conv_1" }],
    ["prompt", { prompt: { id: "pmpt_1" } }],
    ["n", { n: 2 }],
    ["input", { input: [] }],
    ["input", { input: 5 }],
    ["stream", { stream: "yes" }],
    ["text", { text: "json" }],
    ["text.format.type", { text: { format: {} } }],
    ["include", { include: "all" }],
  ])("is rejected because of its %s", (param, body) => {
    expect(() => convert(body)).toThrow(
      expect.objectContaining({ code: "invalid_request", param: expect.stringContaining(param) }),
    );
  });

  test("is rejected with `previous_response_not_found` if it continues a stored response", () => {
    const refused = expect.objectContaining({ code: "previous_response_not_found", param: "previous_response_id" });
    expect(() => convert({ previous_response_id: "resp_1" })).toThrow(refused);
  });

  test("is accepted if unsupported features are null or have their default values", () => {
    const off = { background: false, conversation: null, prompt: null, previous_response_id: null, n: 1 };
    expect(convert(off)).toEqual(convert({}));
  });

  test("lists the fields that have no effect", () => {
    const input = ["Hi"].map((content) => ({ role: "user", content }));
    const body = {
      store: true,
      truncation: "auto",
      tools: [{ type: "web_search" }],
      input: [{ type: "web_search_call", id: "ws_1" }, ...input],
    };
    expect(ignoredIn(body)).toEqual(["store", "truncation", "tools[0]", "input[0]"]);
    expect(ignoredIn({ store: false, truncation: "disabled", max_tool_calls: null })).toEqual([]);
  });

  test("is rejected if it is not an object or has no input", () => {
    expect(() => toChatRequest([], CALL)).toThrow(expect.objectContaining({ param: "body" }));
    expect(() => toChatRequest({}, CALL)).toThrow(expect.objectContaining({ param: "input" }));
  });
});

describe("the input as messages", () => {
  test("puts instructions first and joins leading system messages, because many chat templates accept only one", () => {
    const input = [
      {
        role: "developer",
        content: [
          { type: "input_text", text: "b" },
          { type: "input_text", text: "c" },
        ],
      },
      { type: "message", role: "user", content: "Hi" },
      { role: "system", content: "d" },
    ];
    expect(convert({ instructions: "a", input }).messages).toEqual([
      { role: "system", content: "a\n\nb\nc" },
      { role: "user", content: "Hi" },
      { role: "system", content: "d" },
    ]);
    const { messages } = convert({ instructions: "a", input }, { developerRole: true });
    expect(messages.map(({ role }) => role)).toEqual(["system", "developer", "user", "system"]);
  });

  test("has no system message for empty instructions", () => {
    for (const instructions of ["", null]) expect(convert({ instructions })).toEqual(convert({}));
  });

  test("joins reasoning, text and calls of a turn in one assistant message", () => {
    const input = [
      { role: "user", content: "Weather?" },
      { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "Hm" }] },
      {
        type: "message",
        id: "msg_1",
        role: "assistant",
        status: "completed",
        content: [{ type: "output_text", text: "Looking", annotations: [] }],
      },
      call("a"),
      call("b"),
      output("a"),
      output("b", [
        { type: "input_text", text: "rain" },
        { type: "input_text", text: "wind" },
      ]),
    ];
    expect(messagesOf(input, { thinkingField: "reasoning_content" })).toEqual([
      { role: "user", content: "Weather?" },
      { role: "assistant", content: "Looking", tool_calls: [asked("a"), asked("b")], reasoning_content: "Hm" },
      { role: "tool", tool_call_id: "a", content: "sun" },
      { role: "tool", tool_call_id: "b", content: "rain\nwind" },
    ]);
  });

  test("leaves out reasoning if the upstream does not accept it", () => {
    const input = [
      { type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: "Hm" }] },
      { role: "assistant", content: "x" },
    ];
    expect(messagesOf(input)).toEqual([{ role: "assistant", content: "x" }]);
    expect(messagesOf(input, { thinkingField: "reasoning" })).toEqual([
      { role: "assistant", content: "x", reasoning: "Hm" },
    ]);
  });

  test.each([
    ["only encrypted", { type: "reasoning", id: "rs", summary: [], encrypted_content: "gAAA" }],
    ["empty", { type: "reasoning", id: "rs", summary: [] }],
    ["malformed", { type: "reasoning", summary: "text" }],
  ])("never fails on reasoning that is %s", (_what, item) => {
    expect(messagesOf([item, { role: "user", content: "Hi" }])).toEqual([{ role: "user", content: "Hi" }]);
  });

  test("puts text that follows a call in the message of the call, so that its output comes next", () => {
    expect(messagesOf([call("a"), { role: "assistant", content: "Looking" }, output("a")])).toEqual([
      { role: "assistant", content: "Looking", tool_calls: [asked("a")] },
      { role: "tool", tool_call_id: "a", content: "sun" },
    ]);
  });

  test("keeps two assistant turns separate, and two successive calls", () => {
    expect(
      messagesOf([
        { role: "assistant", content: "a" },
        { role: "assistant", content: "b" },
      ]),
    ).toHaveLength(2);
    const roles = messagesOf([call("a"), output("a"), call("b"), output("b")]).map(({ role }) => role);
    expect(roles).toEqual(["assistant", "tool", "assistant", "tool"]);
  });

  test("sends an image that a tool returned in a user message after all outputs", () => {
    const picture = { type: "input_image", image_url: "data:image/png;base64,AA==" };
    const messages = messagesOf([
      call("a"),
      call("b"),
      output("a", [picture]),
      output("b"),
      { role: "user", content: "And?" },
    ]);
    expect(messages.map(({ role }) => role)).toEqual(["assistant", "tool", "tool", "user", "user"]);
    expect(messages[3]).toMatchObject({
      content: [
        { type: "text", text: "Output of the call a:" },
        { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } },
      ],
    });
  });

  test("converts content parts, and passes engine-specific parts unchanged", () => {
    const content = [
      { type: "input_text", text: "See", prompt_cache_breakpoint: { mode: "explicit" } },
      { type: "input_image", image_url: "https://a.example/a.png", detail: "high", file_id: null },
      { type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,AA==" },
      { type: "input_file", file_id: "file_1" },
      { type: "input_audio", input_audio: { data: "AA==", format: "wav" } },
      { type: "video_url", video_url: { url: "https://a.example/a.mp4" } },
    ];
    expect(messagesOf([{ role: "user", content }])).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "See", prompt_cache_breakpoint: { mode: "explicit" } },
          { type: "image_url", image_url: { url: "https://a.example/a.png", detail: "high" } },
          { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,AA==" } },
          { type: "file", file: { file_id: "file_1" } },
          { type: "input_audio", input_audio: { data: "AA==", format: "wav" } },
          { type: "video_url", video_url: { url: "https://a.example/a.mp4" } },
        ],
      },
    ]);
    expect(messagesOf([{ role: "user", content: [{ type: "input_text", text: "Hi" }] }])).toEqual([
      { role: "user", content: "Hi" },
    ]);
  });

  test("keeps refusals as refusals", () => {
    const content = [{ type: "refusal", refusal: "No." }];
    expect(messagesOf([{ type: "message", role: "assistant", content }])).toEqual([
      { role: "assistant", content: null, refusal: "No." },
    ]);
  });

  test("leaves out empty assistant messages, and the ID and status of messages", () => {
    const empty = { type: "message", role: "assistant", content: [] };
    const kept = { type: "message", id: "msg_1", status: "completed", role: "user", content: "Hi" };
    expect(messagesOf([empty, kept])).toEqual([{ role: "user", content: "Hi" }]);
  });

  test("converts calls of free-form and namespaced tools to the function calls that the upstream made", () => {
    const tools = [{ type: "custom", name: "patch" }];
    const input = [
      { type: "custom_tool_call", call_id: "a", name: "patch", input: 'say "hi"\n' },
      { type: "custom_tool_call_output", call_id: "a", output: "ok" },
      { ...call("b", "read"), namespace: "mcp__files__" },
      output("b"),
    ];
    expect(convert({ input, tools }).messages).toMatchObject([
      { tool_calls: [{ id: "a", function: { name: "patch", arguments: '{"input":"say \\"hi\\"\\n"}' } }] },
      { tool_call_id: "a", content: "ok" },
      { tool_calls: [{ id: "b", function: { name: "mcp__files__read" } }] },
      { tool_call_id: "b" },
    ]);
  });

  test.each([
    ["input[0]", "store: false", [{ type: "item_reference", id: "msg_1" }]],
    ["input[0].call_id", "Send the call as well", [output("a")]],
    ["input[0].call_id", "missing", [{ type: "function_call_output", output: "x" }]],
    ["input[0]", "compaction", [{ type: "compaction", encrypted_content: "x" }]],
    [
      "input[1].role",
      "",
      [
        { role: "user", content: "a" },
        { role: "critic", content: "b" },
      ],
    ],
    ["input[0].type", "missing", [{}]],
    ["input[0]", "object", ["text"]],
    ["input[0].content", "string or a list", [{ role: "user", content: 5 }]],
    ["input[0].content[0].image_url", "missing", [{ role: "user", content: [{ type: "input_image" }] }]],
    ["input[0].content[0].file_id", "by ID", [{ role: "user", content: [{ type: "input_image", file_id: "file_1" }] }]],
    [
      "input[0].content[0].file_url",
      "files are not downloaded",
      [{ role: "user", content: [{ type: "input_file", file_url: "http://10.0.0.1/" }] }],
    ],
    ["input[0].arguments", "missing", [{ type: "function_call", call_id: "a", name: "f" }]],
  ])("is rejected at %s with the message %j", (param, words, input) => {
    expect(() => messagesOf(input)).toThrow(
      expect.objectContaining({ code: "invalid_request", param, message: expect.stringContaining(words) }),
    );
  });
});
