import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { jsonDepthWithin } from "./json-depth.ts";

const within = (text: string, max: number) => jsonDepthWithin(Buffer.from(text), max);

function depthOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

describe("the JSON depth", () => {
  test.each([
    ["", 0],
    ["1", 0],
    ["[]", 1],
    ["{}", 1],
    ['{"a":[{}]}', 3],
    ["[[],[],[]]", 2],
    ['["[[[["]', 1],
    [String.raw`["\"[[[["]`, 1],
    [String.raw`["\\",[["\\\"[["]]]`, 3],
    [`["${"x".repeat(100)}[[\\"[[",[]]`, 2],
    [`["${"x".repeat(100)}\\\\",[[]]]`, 3],
    [`["${"x".repeat(31)}\\"[[[",[]]`, 2],
    [`["${"é".repeat(40)}[[",[]]`, 2],
  ])("of %s is %d", (text, depth) => {
    expect(within(text, depth)).toBe(true);
    if (depth > 0) expect(within(text, depth - 1)).toBe(false);
  });

  test("of any text is the depth that a parser finds", () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 6 }), fc.nat(8), fc.constantFrom(0, 2), (text, max, indent) => {
        const value: unknown = JSON.parse(text);
        expect(within(JSON.stringify(value, null, indent), max)).toBe(depthOf(value) <= max);
      }),
    );
  });

  test("exceeds the limit once one bracket too many opens, whatever precedes or follows it", () => {
    expect(within("[".repeat(65), 64)).toBe(false);
    expect(within(`${"]".repeat(1000)}${"[".repeat(65)}`, 64)).toBe(false);
    expect(within(`{"a":${'{"a":'.repeat(64)}`, 64)).toBe(false);
  });

  test("is found even if a string or an escape never ends", () => {
    expect(within('["', 1)).toBe(true);
    expect(within('["\\', 1)).toBe(true);
    expect(within(`["${"x".repeat(31)}\\`, 1)).toBe(true);
    expect(within(`["${"x".repeat(40)}\\"`, 1)).toBe(true);
  });

  test("takes linear time, even for a string of backslashes and quotes", () => {
    for (const filling of ['\\"', "\\\\", '\\"\\\\', '",["', "x"]) {
      const { bytes, reads } = counted(`["${filling.repeat(2000)}`);
      jsonDepthWithin(bytes, 1_000_000);
      expect(reads()).toBeLessThanOrEqual(4 * bytes.length);
    }
  });
});

/** Bytes that count how often one of them is read. */
function counted(text: string): { bytes: Uint8Array; reads: () => number } {
  const plain = new Uint8Array(Buffer.from(text));
  let reads = 0;
  const bytes = new Proxy(plain, {
    get: (target, name) => {
      if (name === "length") return target.length;
      if (name !== "indexOf") {
        reads += 1;
        return Reflect.get(target, name) as unknown;
      }
      return (byte: number, from: number) => {
        const found = target.indexOf(byte, from);
        reads += (found === -1 ? target.length : found) - from + 1;
        return found;
      };
    },
  });
  return { bytes, reads: () => reads };
}
