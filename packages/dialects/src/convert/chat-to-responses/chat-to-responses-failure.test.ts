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

  test("ends with an error in both forms and a failed response if it breaks off", () => {
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

  test("does not complete a truncated call, because an agent would run it", () => {
    const events = streamResponses([callChunk(0, '{"path":"/', { id: "a", name: "delete" })]);
    failure(events);
    expect(typesOf(events)).not.toContain("response.output_item.done");
    expect(typesOf(events)).not.toContain("response.function_call_arguments.done");
  });

  test("begins with `response.created`, even if the upstream sent nothing", () => {
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
    ["a string", { error: "boom" }, "boom"],
    ["an older engine's form", { object: "error", message: "boom", type: "BadRequestError", code: 400 }, "boom"],
    ["a form without a message", { error: {} }, "without a message"],
  ])("reports an upstream's error in %s, and sends nothing after it", (_what, error, message) => {
    const events = streamResponses([chunk({ content: "x" }), error, chunk({ content: "y" }, "stop")]);
    expect(failure(events)).toMatchObject([{ message: expect.stringContaining(message) }, {}]);
  });

  test("names the field as in the caller's dialect", () => {
    const events = streamResponses([{ error: { message: "no", type: "t", param: "messages[2].content", code: null } }]);
    expect(failure(events)[0]).toMatchObject({ param: "input", error: { param: "input" } });
  });

  test("does not reveal that the upstream rejected the platform's credential", () => {
    const events = streamResponses([{ error: { message: "Incorrect API key sk-123", code: "invalid_api_key" } }]);
    expect(JSON.stringify(events)).not.toContain("sk-123");
  });

  test.each([
    ["a chunk that is not an object", "text"],
    ["a chunk that is a list", [1]],
    ["content that is a number", chunk({ content: 5 })],
    ["a call that is a string", chunk({ tool_calls: ["call"] })],
  ])("fails on %s without throwing", (_what, bad) => {
    failure(streamResponses([chunk({ content: "x" }), bad]));
  });

  test("fails if the finish reason is an error or a tool call has no name", () => {
    failure(streamResponses([chunk({ content: "x" }, "error")]));
    failure(streamResponses([callChunk(0, "{}", { id: "a" }), chunk({}, "tool_calls")]));
  });

  test("fails if the response exceeds a length limit", () => {
    const stream = new ResponsesStream(context);
    const piece = "x".repeat(4 * 1024 * 1024);
    for (let count = 0; count < 20 && !stream.ended; count++) stream.push(chunk({ content: piece }));
    expect(stream.ended).toBe(true);
  });

  test("also reports an error of the host, once", () => {
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
