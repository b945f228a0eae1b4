import { DomainError } from "@fairlead/protocol/errors";
import { describe, expect, test } from "vitest";
import { assertResponsesOrder } from "../../testing/responses-order.ts";
import { CALL, callChunk, chunk, streamResponses, typesOf } from "../bridge.fixture.ts";
import { toChatRequest } from "../responses-to-chat/responses-to-chat-request.ts";
import { ResponsesStream } from "./chat-to-responses-stream.ts";

const { context } = toChatRequest({ input: "Hi" }, CALL);

describe("a chat stream that fails", () => {
  const failure = (events: ReturnType<typeof streamResponses>): unknown[] => {
    assertResponsesOrder(events);
    expect(typesOf(events.slice(-2))).toEqual(["error", "response.failed"]);
    return events.slice(-2);
  };

  test("ends with an error in both forms and a failed response where it breaks off", () => {
    const events = streamResponses([chunk({ content: "Half" })]);
    expect(failure(events)).toMatchObject([
      {
        code: "upstream_failed",
        param: null,
        message: expect.stringContaining("cut off"),
        error: {
          type: "upstream_error",
          code: "upstream_failed",
          param: null,
          message: expect.stringContaining("cut off"),
        },
      },
      { response: { status: "failed", error: { code: "server_error" }, output: [{ status: "incomplete" }] } },
    ]);
  });

  test("leaves a cut call open: an agent that sees it done would run it", () => {
    const events = streamResponses([callChunk(0, '{"path":"/', { id: "a", name: "delete" })]);
    failure(events);
    expect(typesOf(events)).not.toContain("response.output_item.done");
    expect(typesOf(events)).not.toContain("response.function_call_arguments.done");
  });

  test("has created first, even where nothing came", () => {
    expect(typesOf(streamResponses([]))).toEqual([
      "response.created",
      "response.in_progress",
      "error",
      "response.failed",
    ]);
  });

  test.each([
    [
      "OpenAI's form",
      {
        error: {
          message: "Too long",
          type: "invalid_request_error",
          param: "messages",
          code: "context_length_exceeded",
        },
      },
      "Too long",
    ],
    ["a text", { error: "boom" }, "boom"],
    ["an older engine's form", { object: "error", message: "boom", type: "BadRequestError", code: 400 }, "boom"],
    ["no words", { error: {} }, "without a message"],
  ])("tells an upstream's error of %s, and nothing after it", (_what, error, message) => {
    const events = streamResponses([chunk({ content: "x" }), error, chunk({ content: "y" }, "stop")]);
    expect(failure(events)).toMatchObject([{ message: expect.stringContaining(message) }, {}]);
  });

  test("names the field by the name that the caller gave it", () => {
    const events = streamResponses([{ error: { message: "no", type: "t", param: "messages[2].content", code: null } }]);
    expect(failure(events)[0]).toMatchObject({ param: "input", error: { param: "input" } });
  });

  test("keeps the upstream's quarrel with our credential to ourselves", () => {
    const events = streamResponses([{ error: { message: "Incorrect API key sk-123", code: "invalid_api_key" } }]);
    expect(JSON.stringify(events)).not.toContain("sk-123");
  });

  test.each([
    ["no object", "text"],
    ["a list", [1]],
    ["content that is a number", chunk({ content: 5 })],
    ["a call that is a text", chunk({ tool_calls: ["call"] })],
  ])("fails on %s, and does not throw", (_what, bad) => {
    failure(streamResponses([chunk({ content: "x" }), bad]));
  });

  test("fails where the upstream says so by its finish reason, or calls a tool without a name", () => {
    failure(streamResponses([chunk({ content: "x" }, "error")]));
    failure(streamResponses([callChunk(0, "{}", { id: "a" }), chunk({}, "tool_calls")]));
  });

  test("fails where an answer grows without end", () => {
    const stream = new ResponsesStream(context);
    const piece = "x".repeat(4 * 1024 * 1024);
    for (let count = 0; count < 20 && !stream.ended; count++) stream.push(chunk({ content: piece }));
    expect(stream.ended).toBe(true);
  });

  test("is told by our own error too, and only once", () => {
    const stream = new ResponsesStream(context);
    const error = new DomainError("upstream_timeout", "Silent.");
    const events = [
      ...stream.push(chunk({ content: "x" })),
      ...stream.fail(error),
      ...stream.fail(error),
      ...stream.end(),
      ...stream.push(chunk({})),
    ];
    expect(failure(events)).toMatchObject([
      { code: "upstream_timeout" },
      { response: { error: { message: "Silent." } } },
    ]);
  });
});
