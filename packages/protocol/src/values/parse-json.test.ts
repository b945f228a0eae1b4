import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { JsonLimitError, MAX_JSON_DEPTH, MAX_JSON_VALUES, parseJson } from "./parse-json.ts";

const nested = (levels: number): string => `${"[".repeat(levels)}${"]".repeat(levels)}`;

describe("untrusted JSON", () => {
  test("is parsed as by JSON.parse, from text and from bytes", () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 5 }), (text) => {
        const value: unknown = JSON.parse(text);
        expect(parseJson(text)).toEqual(value);
        expect(parseJson(Buffer.from(text))).toEqual(value);
      }),
    );
  });

  test("that is malformed throws a SyntaxError", () => {
    for (const text of ["", "{", "[1,]", "nul", '"', "[]]"]) expect(() => parseJson(text)).toThrow(SyntaxError);
  });

  test("may start with a byte order mark when it is given as bytes", () => {
    expect(parseJson(Buffer.from("\ufeff{}"))).toEqual({});
  });

  test("is rejected before parsing if it is nested too deeply, even if it is cut off", () => {
    expect(parseJson(nested(MAX_JSON_DEPTH))).toBeDefined();
    for (const text of [nested(MAX_JSON_DEPTH + 1), "[".repeat(1_000_000), `{"usage":${nested(1_000_000)}}`]) {
      expect(() => parseJson(text)).toThrow(JsonLimitError);
      expect(() => parseJson(Buffer.from(text))).toThrow(JsonLimitError);
    }
  });

  test("is rejected if it contains too many values", () => {
    expect(() => parseJson(`[${"[],".repeat(MAX_JSON_VALUES / 2)}1]`)).toThrow(/contains more than/);
    expect(() => parseJson(`[${"1,".repeat(MAX_JSON_VALUES)}1]`)).toThrow(/contains more than/);
    expect(parseJson(`[${"1,".repeat(9)}1]`, { maxValues: 10 })).toHaveLength(10);
    expect(() => parseJson(`[${"1,".repeat(10)}1]`, { maxValues: 10 })).toThrow(JsonLimitError);
    expect(parseJson(JSON.stringify(",".repeat(100)), { maxValues: 1 })).toHaveLength(100);
  });

  test("is rejected if it is too long, counted in bytes", () => {
    expect(parseJson('"é"', { maxBytes: 4 })).toBe("é");
    expect(() => parseJson('"é"', { maxBytes: 3 })).toThrow(JsonLimitError);
    expect(() => parseJson(Buffer.from('"é"'), { maxBytes: 3 })).toThrow(JsonLimitError);
  });

  test("keeps `__proto__` as an ordinary key", () => {
    const value = parseJson('{"__proto__":{"x":1}}') as object;
    expect(Object.keys(value)).toEqual(["__proto__"]);
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
  });
});
