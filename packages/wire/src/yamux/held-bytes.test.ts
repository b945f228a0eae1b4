import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { HeldBytes } from "./held-bytes.ts";

function drain(held: HeldBytes): Buffer[] {
  const pieces: Buffer[] = [];
  for (let piece = held.shift(); piece !== undefined; piece = held.shift()) pieces.push(piece);
  return pieces;
}

describe("held bytes", () => {
  test("come out as they went in, however they are split", () => {
    const step = fc.option(fc.uint8Array({ maxLength: 9000, minLength: 1 }));
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        const held = new HeldBytes();
        const put: Buffer[] = [];
        const got: Buffer[] = [];
        for (const piece of steps) {
          if (piece === null) got.push(held.shift() ?? Buffer.alloc(0));
          else {
            put.push(Buffer.from(piece));
            held.push(Buffer.from(piece));
          }
          expect(held.length).toBe(Buffer.concat(put).length - Buffer.concat(got).length);
        }
        got.push(...drain(held));
        expect(Buffer.concat(got).equals(Buffer.concat(put))).toBe(true);
        expect(held.length).toBe(0);
      }),
    );
  });

  test("do not retain the large reads that they were part of", () => {
    const held = new HeldBytes();
    let bytes = 0;
    for (let turn = 0; turn < 4000; turn += 1) {
      const read = Buffer.alloc(64 * 1024);
      const piece = read.subarray(100, turn % 100 === 0 ? 5100 : 140);
      bytes += piece.length;
      held.push(piece);
    }
    expect(held.length).toBe(bytes);
    const kept = new Set(drain(held).map(({ buffer }) => buffer));
    const memory = [...kept].reduce((sum, buffer) => sum + buffer.byteLength, 0);
    expect(memory).toBeLessThan(3 * bytes);
  });

  test("are gone once they are cleared", () => {
    const held = new HeldBytes();
    held.push(Buffer.from("a"));
    held.clear();
    held.push(Buffer.from("b"));
    expect([held.length, drain(held).join()]).toEqual([1, "b"]);
  });
});
