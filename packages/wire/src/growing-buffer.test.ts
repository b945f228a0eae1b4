import fc from "fast-check";
import { expect, test, vi } from "vitest";
import { GrowingBuffer } from "./growing-buffer.ts";

const pieces = fc.array(fc.uint8Array({ maxLength: 30 }), { maxLength: 30 });

test("bytes returned earlier do not change while more is appended", () => {
  fc.assert(
    fc.property(pieces, fc.boolean(), (all, holds) => {
      const buffer = new GrowingBuffer();
      const views = all.map((piece, at) => {
        if (holds && at === 0) buffer.hold(Buffer.from(piece));
        else buffer.append(Buffer.from(piece));
        return buffer.bytes;
      });
      for (const [at, view] of views.entries()) expect(view).toEqual(Buffer.concat(all.slice(0, at + 1)));
      expect(buffer.length).toBe(Buffer.concat(all).length);
    }),
  );
});

test("each byte is copied a bounded number of times", () => {
  const copy = vi.spyOn(Buffer.prototype, "copy");
  const buffer = new GrowingBuffer();
  for (let count = 0; count < 5000; count += 1) buffer.append(Buffer.of(1));
  const copied = copy.mock.results.reduce((sum, { value }) => sum + Number(value), 0);
  copy.mockRestore();
  expect(copied).toBeLessThan(15_000);
});
