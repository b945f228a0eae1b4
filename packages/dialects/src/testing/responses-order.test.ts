import { describe, expect, test } from "vitest";
import { callChunk, chunk, streamResponses, usageChunk } from "../convert/bridge.fixture.ts";
import type { ResponseEvent } from "../convert/wire.ts";
import { assertResponsesOrder, responsesOrderProblems } from "./responses-order.ts";

const good = streamResponses([
  chunk({ reasoning_content: "Hm" }),
  chunk({ content: "Let me " }),
  chunk({ content: "look." }),
  callChunk(0, '{"a"', { id: "call_a", name: "look" }),
  callChunk(1, "{}", { id: "call_b", name: "look" }),
  callChunk(0, ":1}"),
  chunk({}, "tool_calls"),
  usageChunk,
]);

const renumbered = (events: readonly ResponseEvent[]): ResponseEvent[] =>
  events.map((event, sequence_number) => ({ ...event, sequence_number }));

describe("the order check for responses streams", () => {
  test("accepts a valid stream", () => {
    expect(() => assertResponsesOrder(good)).not.toThrow();
  });

  test("detects every missing event", () => {
    const required = good.filter(({ type }) => type !== "response.in_progress" && !type.endsWith("arguments.delta"));
    for (const missing of required) {
      const rest = renumbered(good.filter((event) => event !== missing));
      expect(responsesOrderProblems(rest), missing.type).not.toEqual([]);
    }
  });

  test("detects every duplicate event and every event after the end", () => {
    for (const [index, event] of good.entries()) {
      if (event.type.endsWith("arguments.delta")) continue;
      expect(responsesOrderProblems(renumbered(good.toSpliced(index, 0, event))), event.type).not.toEqual([]);
      expect(responsesOrderProblems(renumbered([...good, event])), event.type).not.toEqual([]);
    }
  });

  test("detects gaps in the sequence numbers and vendor-specific events", () => {
    expect(
      responsesOrderProblems(good.map((event) => ({ ...event, sequence_number: event.sequence_number + 1 }))),
    ).not.toEqual([]);
    const custom = { type: "acme:session", sequence_number: 1 };
    expect(responsesOrderProblems(renumbered(good.toSpliced(1, 0, custom as unknown as ResponseEvent)))).not.toEqual(
      [],
    );
  });

  test("throws an error that names every broken rule", () => {
    expect(() => assertResponsesOrder([])).toThrow("no terminal event");
  });
});
