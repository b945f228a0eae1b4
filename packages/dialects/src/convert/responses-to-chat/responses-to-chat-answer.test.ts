import { describe, expect, test } from "vitest";
import { CALL } from "../bridge.fixture.ts";
import { toResponsesRequest } from "../chat-to-responses/chat-to-responses-request.ts";
import { called, message, patched, thought, USAGE } from "../responses-upstream.fixture.ts";
import { toChatCompletion } from "./responses-to-chat-answer.ts";

const { context } = toResponsesRequest({ messages: [{ role: "user", content: "Hi" }] }, CALL);

describe("a complete response converted to a chat completion", () => {
  test("is one message with reasoning, text and calls", () => {
    const output = [
      thought("Hm"),
      message("Look"),
      message("ing"),
      called("a", "{}"),
      patched,
      { type: "web_search_call", id: "ws_1" },
    ];
    expect(
      toChatCompletion(
        {
          id: "resp_1",
          model: "big",
          status: "completed",
          output,
          usage: USAGE,
          service_tier: "flex",
          timings: 5,
          temperature: 1,
        },
        context,
      ),
    ).toEqual({
      id: "chatcmpl-01kc3b6q2v8r5x0m7n4t9w1yza",
      object: "chat.completion",
      created: CALL.createdAt,
      model: "box/tiny",
      service_tier: "flex",
      timings: 5,
      choices: [
        {
          index: 0,
          finish_reason: "tool_calls",
          logprobs: null,
          message: {
            role: "assistant",
            content: "Looking",
            refusal: null,
            reasoning_content: "Hm",
            tool_calls: [
              { id: "a", type: "function", function: { name: "look", arguments: "{}" } },
              { id: "p", type: "custom", custom: { name: "patch", input: "***" } },
            ],
          },
        },
      ],
      usage: {
        prompt_tokens: 11,
        prompt_tokens_details: { cached_tokens: 5, cache_write_tokens: 0 },
        completion_tokens: 7,
        completion_tokens_details: { reasoning_tokens: 3 },
        total_tokens: 18,
      },
    });
  });

  test("has null content if there are only calls or a refusal, and an empty string if there is nothing", () => {
    const contentOf = (output: unknown[]) =>
      toChatCompletion({ status: "completed", output }, context).choices[0]?.message;
    expect(contentOf([called("a", "{}")])?.content).toBeNull();
    expect(contentOf([{ type: "message", content: [{ type: "refusal", refusal: "No." }] }])).toMatchObject({
      content: null,
      refusal: "No.",
    });
    expect(contentOf([])?.content).toBe("");
  });

  test.each([
    ["failed", { status: "failed", error: { code: "server_error", message: "boom" }, output: [] }, "boom"],
    ["is still running", { status: "in_progress", error: null, output: [] }, "did not finish"],
    ["is not a response", { choices: [] }, "not a response"],
    ["is a string", "boom", "not a response"],
  ])("is rejected if it %s", (_what, answer, words) => {
    expect(() => toChatCompletion(answer, context)).toThrow(
      expect.objectContaining({ code: "upstream_failed", message: expect.stringContaining(words) }),
    );
  });
});
