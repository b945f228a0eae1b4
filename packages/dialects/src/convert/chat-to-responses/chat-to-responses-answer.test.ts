import { describe, expect, test } from "vitest";
import { answerResponses, CALL, USAGE } from "../bridge.fixture.ts";
import { toChatRequest } from "../responses-to-chat/responses-to-chat-request.ts";
import { toResponse } from "./chat-to-responses-answer.ts";

const { context } = toChatRequest({ input: "Hi" }, CALL);

describe("a whole chat completion told as a response", () => {
  test("holds thinking, text and calls, each an item", () => {
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

  test("has no message where there are calls and no text, and keeps calls apart that have no id", () => {
    const call = { type: "function", function: { name: "look", arguments: "{}" } };
    const { output } = answerResponses({ content: null, tool_calls: [call, call] }, "tool_calls");
    expect(output.map(({ type }) => type)).toEqual(["function_call", "function_call"]);
  });

  test("takes the old form of a call", () => {
    const { output } = answerResponses(
      { content: null, function_call: { name: "look", arguments: "{}" } },
      "function_call",
    );
    expect(output).toMatchObject([{ type: "function_call", name: "look" }]);
  });

  test("repeats what was asked for, and what was in effect where nothing was", () => {
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
    ["an error with status 200", { error: { message: "boom" } }, "boom"],
    ["no choice", { choices: [] }, "cut off"],
    ["no object", "boom", "not a chat completion"],
  ])("is refused where it is %s", (_what, answer, message) => {
    expect(() => toResponse(answer, context)).toThrow(
      expect.objectContaining({ code: "upstream_failed", message: expect.stringContaining(message) }),
    );
  });
});
