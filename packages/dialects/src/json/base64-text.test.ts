import fc from "fast-check";
import { expect, test } from "vitest";
import { isBase64 } from "./base64-text.ts";

const BASE64 = /^(?:[\w+/-]{4})*(?:[\w+/-]{2}(?:==)?|[\w+/-]{3}=?)?$/;

/** Cuts a text at the given places, which may leave empty pieces. */
function cut(text: string, places: readonly number[]): Buffer[] {
  const bytes = Buffer.from(text);
  const at = [0, ...places.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return at.slice(1).map((end, index) => bytes.subarray(at[index], end));
}

const places = fc.array(fc.nat(), { maxLength: 5 });
const length = fc.integer({ min: 1, max: 15_000 });

test("base64 of any length is recognized, however it is split, in both alphabets, with escaped slashes and data URL prefixes", () => {
  const head = fc.constantFrom("", "data:image/png;base64,", "data:image\\/svg+xml;charset=utf-8;base64,");
  const property = fc.property(
    fc.record({ bytes: length, prefix: head, escaped: fc.boolean(), cuts: places }),
    (text) => {
      const { bytes, prefix, escaped, cuts } = text;
      const data = Buffer.from(Array.from({ length: bytes }, (_, at) => (at * 7919) % 256));
      const base64 = data.toString(bytes % 2 === 0 ? "base64" : "base64url");
      expect(isBase64(cut(prefix + (escaped ? base64.replaceAll("/", "\\/") : base64), cuts))).toBe(true);
    },
  );
  fc.assert(property);
});

test("a single invalid byte is detected at any position", () => {
  const foreign = fc.constantFrom(" ", ".", "=", '\\"', "\\n", "é", "\u0000", "\\u0041", ",");
  const property = fc.property(
    fc.record({ bytes: length, byte: foreign, place: fc.nat(), cuts: places }),
    (mutated) => {
      const { bytes, byte, place, cuts } = mutated;
      const base64 = Buffer.alloc(bytes, "some pixels").toString("base64");
      const at = place % (base64.length + 1);
      const text = base64.slice(0, at) + byte + base64.slice(at);
      expect(isBase64(cut(text, cuts))).toBe(BASE64.test(text));
    },
  );
  fc.assert(property, { numRuns: 300 });
});

test.each([
  "",
  "a",
  "aaaaa",
  "=",
  "aaa==",
  "aa=",
  "a===",
  "data:,",
  "data:text/plain,aaaa",
  "data:image/png;base64,",
  "aa==aaaa",
])("%j is not recognized as base64", (text) => {
  expect(isBase64([Buffer.from(text)])).toBe(false);
});
