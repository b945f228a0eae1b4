import { describe, expect, test } from "vitest";
import { BodyPieces } from "./body-pieces.ts";

function all(pieces: BodyPieces): Buffer[] {
  const taken: Buffer[] = [];
  for (let piece = pieces.next(); piece !== undefined; piece = pieces.next()) taken.push(piece);
  return taken;
}

describe("the chunks of a body", () => {
  test("contain the whole body in order, and none is empty or longer than 64 KiB", () => {
    const sizes = [0, 1, 65_536, 0, 65_537, 200_000, 0];
    const body = sizes.map((size, at) => Buffer.alloc(size, at));
    const taken = all(new BodyPieces(body));
    expect(Buffer.concat(taken).equals(Buffer.concat(body))).toBe(true);
    expect(taken.map(({ length }) => length)).toEqual([1, 65_536, 65_536, 1, 65_536, 65_536, 65_536, 3392]);
  });

  test("do not exist for an empty body, or after the body was dropped", () => {
    expect([all(new BodyPieces([])), all(new BodyPieces([Buffer.alloc(0)]))]).toEqual([[], []]);
    const pieces = new BodyPieces([Buffer.alloc(100_000), Buffer.alloc(1)]);
    expect(pieces.next()).toHaveLength(65_536);
    pieces.drop();
    expect(pieces.next()).toBeUndefined();
  });
});
