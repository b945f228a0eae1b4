import { describe, expect, test } from "vitest";
import { toErrorBody } from "./upstream-error.ts";

const UPSTREAM = { message: "Too long", type: "invalid_request_error", code: "context_length_exceeded" };

describe("an upstream's refusal, for the caller of a bridged call", () => {
  test("has all keys of an error, and the upstream's words", () => {
    expect(toErrorBody({ error: UPSTREAM }, { dialect: "chat", requestId: "req_1" })).toEqual({
      error: { ...UPSTREAM, param: null, source: "provider", requestId: "req_1" },
    });
  });

  test.each([
    ["messages[1].content", "input"],
    ["max_tokens", "max_output_tokens"],
    ["max_completion_tokens", "max_output_tokens"],
    ["response_format.json_schema", "text.format"],
    ["reasoning_effort", "reasoning.effort"],
    ["tools[0].function.name", "tools[0].function.name"],
    ["temperature", "temperature"],
    ["constructor", "constructor"],
  ])("names %s of chat completions as %s of responses", (param, expected) => {
    expect(
      toErrorBody({ error: { ...UPSTREAM, param } }, { dialect: "responses", requestId: "req_1" }).error.param,
    ).toBe(expected);
  });

  test.each([
    ["input[1]", "messages"],
    ["max_output_tokens", "max_completion_tokens"],
    ["text.format.schema", "response_format"],
    ["reasoning.effort", "reasoning_effort"],
  ])("names %s of responses as %s of chat completions", (param, expected) => {
    expect(toErrorBody({ error: { ...UPSTREAM, param } }, { dialect: "chat", requestId: "req_1" }).error.param).toBe(
      expected,
    );
  });

  test.each([
    ["a page", "<h1>Bad Gateway</h1>", "<h1>Bad Gateway</h1>"],
    ["FastAPI's form", { detail: "Not here" }, "Not here"],
    ["a text in `error`", { error: "model not found" }, "model not found"],
    ["an older engine's form", { object: "error", message: "boom", code: 400 }, "boom"],
    ["nothing", "", "without a message"],
    ["null", null, "without a message"],
    ["a message that is no text", { error: { message: { a: 1 } } }, "without a message"],
  ])("is read from %s", (_what, body, words) => {
    expect(toErrorBody(body, { dialect: "chat", requestId: "req_1" }).error.message).toContain(words);
  });

  test("is cut where it is long", () => {
    expect(
      toErrorBody({ error: { message: "x".repeat(100_000) } }, { dialect: "chat", requestId: "req_1" }).error.message,
    ).toHaveLength(4000);
  });

  test.each([
    { code: "invalid_api_key" },
    { type: "authentication_error" },
    { code: 402 },
    { code: "insufficient_quota" },
  ])("does not tell of the platform's own account: %j", (rest) => {
    const { error } = toErrorBody(
      { error: { message: "Key sk-1 is out of money", ...rest } },
      { dialect: "chat", requestId: "req_1" },
    );
    expect(JSON.stringify(error)).not.toContain("sk-1");
    expect(error).toMatchObject({ code: "upstream_failed", type: "upstream_error" });
  });
});
