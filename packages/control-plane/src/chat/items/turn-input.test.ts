import { describe, expect, test } from "vitest";
import { readTurn } from "./turn-input.ts";

const user = (content: unknown): object => ({ role: "user", content });
const question = (text: string): object => ({
  type: "message",
  role: "user",
  content: [{ type: "input_text", text }],
});

describe("the turn in a request body", () => {
  test("is the last user message with all its parts; earlier messages are ignored", () => {
    const image = { type: "input_image", image_url: "data:image/png;base64,AA", detail: "auto" };
    const parts = [
      { type: "text", text: "What " },
      { type: "image_url", image_url: { url: image.image_url } },
      { type: "input_text", text: "is it?" },
    ];
    const messages = [
      user("earlier"),
      { role: "assistant", content: "yes" },
      user(parts),
      { role: "assistant", content: "It" },
    ];
    expect(readTurn({ messages })).toEqual({
      kind: "question",
      items: [
        {
          type: "message",
          role: "user",
          content: [{ type: "input_text", text: "What " }, image, { type: "input_text", text: "is it?" }],
        },
      ],
      text: "What is it?",
      instructions: [],
    });
  });

  test("is read from `input`, which may be a string, if there are no messages", () => {
    for (const body of [{ input: "hello" }, { input: [user("hello")] }, { messages: null, input: "hello" }]) {
      expect(readTurn(body)).toMatchObject({ kind: "question", text: "hello", items: [question("hello")] });
    }
    expect(readTurn({ messages: [user("this")], input: "not this" }).text).toBe("this");
  });

  test("skips references to stored items (vercel/ai#7543)", () => {
    const input = [
      user("a"),
      { type: "item_reference", id: "msg_1" },
      user("b"),
      { type: "item_reference", id: "msg_2" },
    ];
    expect(readTurn({ input }).text).toBe("b");
    const outputs = [
      user("a"),
      { type: "item_reference", id: "fc_1" },
      { type: "function_call_output", call_id: "c", output: "x" },
    ];
    expect(readTurn({ input: outputs })).toMatchObject({ kind: "outputs", items: [{ call_id: "c" }] });
  });

  test("keeps instructions separate, wherever they appear", () => {
    const messages = [
      { role: "system", content: "Be brief." },
      user("hello"),
      { role: "developer", content: [{ type: "input_text", text: "In verse." }] },
    ];
    const { items, instructions } = readTurn({ messages });
    expect(items).toEqual([question("hello")]);
    expect(instructions).toMatchObject([{ role: "system" }, { role: "developer", content: [{ text: "In verse." }] }]);
  });

  test("consists of the tool outputs at the end, in either dialect", () => {
    const call = {
      role: "assistant",
      tool_calls: [{ id: "c1", type: "function", function: { name: "f", arguments: "{}" } }],
    };
    const chat = [
      user("weather?"),
      call,
      { role: "tool", tool_call_id: "c1", content: "sun" },
      { role: "tool", tool_call_id: "c2", content: [{ type: "text", text: "rain" }] },
    ];
    expect(readTurn({ messages: chat })).toMatchObject({
      kind: "outputs",
      text: "",
      items: [
        { type: "function_call_output", call_id: "c1", output: "sun" },
        { type: "function_call_output", call_id: "c2", output: [{ type: "input_text", text: "rain" }] },
      ],
    });
    const input = [user("patch"), { type: "custom_tool_call_output", id: "x", call_id: "c1", output: "done" }];
    expect(readTurn({ input }).items).toEqual([{ type: "custom_tool_call_output", call_id: "c1", output: "done" }]);
    expect(readTurn({ messages: [...chat, user("thanks")] })).toMatchObject({ kind: "question", text: "thanks" });
  });

  test("ignores fields that a client adds to its messages", () => {
    const message = { ...user("hello"), id: "local-1", createdAt: 5, parts: [{ type: "text" }], name: "Ann" };
    expect(readTurn({ messages: [message] }).items).toEqual([question("hello")]);
  });

  test("may be an attachment without text", () => {
    const image = { type: "input_image", image_url: "https://example.org/a.png" };
    expect(readTurn({ messages: [user([image])] })).toMatchObject({ text: "", items: [{ content: [image] }] });
  });

  test.each<[string, Record<string, unknown>, string]>([
    ["an empty body", {}, "messages"],
    ["messages that are not a list", { messages: "hello" }, "messages"],
    ["an empty list", { messages: [] }, "messages"],
    ["an empty input", { input: [] }, "messages"],
    [
      "no user message",
      {
        messages: [
          { role: "system", content: "x" },
          { role: "assistant", content: "y" },
        ],
      },
      "messages",
    ],
    ["a message that is not an object", { messages: [user("a"), 7] }, "messages[1]"],
    ["an empty text", { messages: [user("  ")] }, "messages[0].content"],
    ["a message without content", { messages: [{ role: "user" }] }, "messages[0].content"],
    ["a text that is not a string", { input: [user([{ type: "text", text: 5 }])] }, "input[0].content[0].text"],
    ["a part that is not an object", { messages: [user(["a"])] }, "messages[0].content[0]"],
    ["an output of no call", { messages: [user("a"), { role: "tool", content: "x" }] }, "messages[1].tool_call_id"],
  ])("is rejected for %s, naming the field", (_what, body, param) => {
    expect(() => readTurn(body)).toThrow(expect.objectContaining({ code: "invalid_request", param }) as Error);
  });
});
