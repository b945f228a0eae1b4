import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { freeIdentifier, identifierFrom } from "./node.ts";

describe("a node's identifier", () => {
  it.each([
    ["GPU box 1", "gpu-box-1"],
    ["  Zürich / rack #4 ", "zu-rich-rack-4"],
    ["---", "node"],
    ["机器", "node"],
    [`${"long ".repeat(20)}`, "long-long-long-long-long-long-long-long"],
  ])("is the slug of the name: %j", (name, identifier) => {
    expect(identifierFrom(name)).toBe(identifier);
  });

  it("always has 1 to 40 characters of a-z, 0-9 and -, whatever the name and however many are taken", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.nat({ max: 20 }), (name, count) => {
        const taken = new Set<string>();
        for (let n = 0; n <= count; n++) {
          const identifier = freeIdentifier(identifierFrom(name), taken);
          expect(identifier).toMatch(/^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?$/);
          expect(taken.has(identifier)).toBe(false);
          taken.add(identifier);
        }
      }),
    );
  });

  it("gets a number, starting at 2, if the slug is taken", () => {
    expect(freeIdentifier("box", new Set(["box", "box-2"]))).toBe("box-3");
  });
});
