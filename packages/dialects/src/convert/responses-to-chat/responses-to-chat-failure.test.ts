import { DomainError } from "@fairlead/protocol/errors";
import { describe, expect, test } from "vitest";
import { CALL, streamChat } from "../bridge.fixture.ts";
import { toResponsesRequest } from "../chat-to-responses/chat-to-responses-request.ts";
import { added, called, created, delta } from "../responses-upstream.fixture.ts";
import { ChatStream } from "./responses-to-chat-stream.ts";

const { context } = toResponsesRequest({ messages: [{ role: "user", content: "Hi" }] }, CALL);

const finishOf = (events: ReturnType<typeof streamChat>) =>
  events.flatMap((event) =>
    "error" in event ? ["error"] : event.choices.flatMap(({ finish_reason: reason }) => reason ?? []),
  );

describe("a responses stream that fails", () => {
  test.each([
    ["breaks off", [created, delta(0, "Half")], "cut off"],
    ["is empty", [], "cut off"],
    ["has a flat error", [created, { type: "error", code: "server_error", message: "boom", param: null }], "boom"],
    [
      "has a nested error",
      [created, { type: "error", error: { type: "t", code: "c", message: "boom", param: null } }],
      "boom",
    ],
    ["has an error without a type", [{ error: { message: "boom" } }], "boom"],
    [
      "failed",
      [
        created,
        { type: "response.failed", response: { status: "failed", error: { code: "server_error", message: "boom" } } },
      ],
      "boom",
    ],
    ["failed without a reason", [created, { type: "response.failed", response: { status: "failed" } }], "message"],
    [
      "completes with a response that is not complete",
      [created, { type: "response.completed", response: { status: "cancelled", output: [] } }],
      "did not finish",
    ],
    ["is not a stream of events", ["text"], "not an event"],
  ])("ends with an error and without a finish reason if it %s", (_what, events, words) => {
    const told = streamChat(events);
    expect(finishOf(told)).toEqual(["error"]);
    expect(told.at(-1)).toMatchObject({ error: { message: expect.stringContaining(words), type: expect.any(String) } });
    expect(Object.keys((told.at(-1) as { error: object }).error).toSorted()).toEqual([
      "code",
      "message",
      "param",
      "requestId",
      "source",
      "type",
    ]);
  });

  test("names the field as in the caller's dialect", () => {
    const told = streamChat([{ type: "error", code: null, message: "no", param: "input[0]" }]);
    expect(told).toMatchObject([{ error: { param: "messages" } }]);
  });

  test("also reports an error of the host, once", () => {
    const stream = new ChatStream(context);
    const error = new DomainError("upstream_timeout", "Silent.");
    expect([...stream.fail(error), ...stream.fail(error), ...stream.end(), ...stream.push(created)]).toEqual([
      {
        error: {
          message: "Silent.",
          type: "upstream_error",
          param: null,
          code: "upstream_timeout",
          source: "provider",
          requestId: CALL.id,
        },
      },
    ]);
  });

  test("fails if the number of items exceeds a limit", () => {
    const stream = new ChatStream(context);
    for (let at = 0; at < 2000 && !stream.ended; at++) stream.push(added(at, called(String(at), "")));
    expect(stream.ended).toBe(true);
  });
});
