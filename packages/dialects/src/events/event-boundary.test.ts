import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { firstEventEnd, isBetweenEvents, lastEventEnd, STREAM_START, tailAfter } from "./event-boundary.ts";

const after = (...pieces: string[]): boolean =>
  isBetweenEvents(pieces.reduce((tail, piece) => tailAfter(tail, Buffer.from(piece)), STREAM_START));

describe("the boundary between two events", () => {
  test.each(["data: 1\n\n", "data: 1\r\r", "data: 1\r\n\r\n", "data: 1\n\r\n", "data: 1\r\r\n", ": x\n\n"])(
    "is after %j, however it is split",
    (stream) => {
      expect(after(stream)).toBe(true);
      expect(after(...stream.split(""))).toBe(true);
      for (let cut = 1; cut < stream.length - 2; cut++) expect(after(stream.slice(0, cut))).toBe(false);
    },
  );

  test.each(["data: 1", "data: 1\n", "data: 1\r\n", "data: 1\r", "data: 1\r\n\r", "data: 1\n\ndata"])(
    "is not after %j",
    (stream) => {
      expect(after(stream)).toBe(false);
    },
  );

  test("is also at the start of a stream", () => {
    expect(isBetweenEvents(STREAM_START)).toBe(true);
  });

  test("is found from both ends, taking earlier bytes into account", () => {
    const text = fc.string({ unit: fc.constantFrom("\n", "\r", "a", "data: ") });
    const property = fc.property(text, text, (before, bytes) => {
      const tail = tailAfter(STREAM_START, Buffer.from(before));
      const ends = Array.from({ length: bytes.length }, (_, at) => at + 1).filter((end) =>
        isBetweenEvents(tailAfter(tail, Buffer.from(bytes.slice(0, end)))),
      );
      expect(firstEventEnd(tail, Buffer.from(bytes))).toBe(ends[0] ?? 0);
      expect(lastEventEnd(tail, Buffer.from(bytes))).toBe(ends.at(-1) ?? 0);
    });
    fc.assert(property, { numRuns: 1000 });
  });
});
