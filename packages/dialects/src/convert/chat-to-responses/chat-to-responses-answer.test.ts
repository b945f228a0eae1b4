import { describe, expect, test } from "vitest";
import { answerResponses, CALL, USAGE } from "../bridge.fixture.ts";
import { toChatRequest } from "../responses-to-chat/responses-to-chat-request.ts";
import { toResponse } from "./chat-to-responses-answer.ts";

const { context } = toChatRequest({ input: "Hi" }, CALL);

describe("a complete chat completion converted to a response", () => {
  test("has an item each for reasoning, text and calls", () => {
    const response = answerResponses(
      {
        reasoning_content: "Hm",
        content: "Looking",
        tool_calls: [{ id: "a", type: "function", function: { name: "look", arguments: "{}" } }],
      },
      "tool_calls",
      { usage: USAGE, service_tier: "flex" },
    );
    expect(response.output).toMatchObject([
      { type: "reasoning" },
      { type: "message", content: [{ text: "Looking" }] },
      { type: "function_call", call_id: "a" },
    ]);
    expect(response).toMatchObject({ status: "completed", service_tier: "flex", usage: { total_tokens: 18 } });
  });

  test("has no message if there are only calls, and keeps calls without IDs separate", () => {
    const call = { type: "function", function: { name: "look", arguments: "{}" } };
    const { output } = answerResponses({ content: null, tool_calls: [call, call] }, "tool_calls");
    expect(output.map(({ type }) => type)).toEqual(["function_call", "function_call"]);
  });

  test("accepts the legacy form of a call", () => {
    const { output } = answerResponses(
      { content: null, function_call: { name: "look", arguments: "{}" } },
      "function_call",
    );
    expect(output).toMatchObject([{ type: "function_call", name: "look" }]);
  });

  test("repeats the requested values, and otherwise the values that were in effect", () => {
    const body = {
      instructions: "Be brief",
      temperature: 0.5,
      max_output_tokens: 50,
      store: true,
      truncation: "auto",
      metadata: { a: "b" },
      reasoning: { effort: "low" },
      text: { format: { type: "json_object" }, verbosity: "low" },
      tools: [{ type: "web_search" }, { type: "function", name: "f" }],
    };
    expect(answerResponses({ content: "x" }, "stop", { body })).toMatchObject({
      instructions: "Be brief",
      temperature: 0.5,
      top_p: 1,
      max_output_tokens: 50,
      store: false,
      truncation: "disabled",
      metadata: { a: "b" },
      reasoning: { effort: "low", summary: null },
      text: { format: { type: "json_object" }, verbosity: "low" },
      tools: [{ type: "function", name: "f", description: null, parameters: null, strict: null }],
    });
  });

  test.each([
    ["is an error with status 200", { error: { message: "boom" } }, "boom"],
    ["has no choice", { choices: [] }, "cut off"],
    ["is not an object", "boom", "not a chat completion"],
  ])("is rejected if it %s", (_what, answer, message) => {
    expect(() => toResponse(answer, context)).toThrow(
      expect.objectContaining({ code: "upstream_failed", message: expect.stringContaining(message) }),
    );
  });
});
