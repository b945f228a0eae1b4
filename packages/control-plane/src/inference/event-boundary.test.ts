import fc from "fast-check";
import { expect, test } from "vitest";
import { EventBoundary } from "./event-boundary.ts";

function reached(...chunks: string[]): boolean {
  const boundary = new EventBoundary();
  for (const chunk of chunks) boundary.push(Buffer.from(chunk));
  return boundary.reached;
}

test("a stream begins between two events", () => {
  expect(reached()).toBe(true);
});

test.each(["data: 1\n\n", "data: 1\r\n\r\n", "data: 1\r\r", "data: 1\n\r\n", ": note\n\n"])(
  "an empty line ends an event, however lines end and pieces are cut: %j",
  (text) => {
    expect(reached(text)).toBe(true);
    expect(reached(...Array.from(text))).toBe(true);
    expect(reached("data: 0\n\n", text)).toBe(true);
  },
);

test.each(["data: 1", "data: 1\n", "data: 1\r\n", "data: 1\r", "data: 1\n\ndata", "data: 1\r\n\r"])(
  "anything else does not: %j",
  (text) => {
    expect(reached(text)).toBe(false);
    expect(reached(...Array.from(text))).toBe(false);
  },
);

test("the cut of pieces never matters", () => {
  const text = fc.string({ unit: fc.constantFrom("\n", "\r", "a") });
  const property = fc.property(text, fc.nat(), (whole, place) => {
    const at = place % (whole.length + 1);
    expect(reached(whole.slice(0, at), whole.slice(at))).toBe(reached(whole));
  });
  fc.assert(property);
});
