import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MemberReader } from "./member-reader.ts";

const PATHS = ["usage", "error", "response.usage", "response.id"];

/** Cuts a Buffer at the given places, which may leave empty pieces. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const at = [0, ...places.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return at.slice(1).map((end, index) => bytes.subarray(at[index], end));
}

function read(text: string, places: readonly number[] = []): MemberReader {
  const reader = new MemberReader(PATHS);
  for (const piece of cut(Buffer.from(text), places)) reader.push(piece);
  return reader;
}

describe("members of a JSON object", () => {
  test("are exactly those that a parser finds, however the bytes are split", () => {
    const leaf = fc.jsonValue({ stringUnit: "binary", maxDepth: 3 });
    const names = fc.constantFrom("usage", "response", "id", "error", "choices", 'us"age', "usage\\", "");
    const inner = fc.dictionary(names, leaf, { noNullPrototype: true });
    const document = fc.dictionary(names, fc.oneof(leaf, inner), { noNullPrototype: true });
    const space = fc.constantFrom(undefined, 1, "\r\n\t");
    const property = fc.property(document, space, fc.array(fc.nat(), { maxLength: 12 }), (value, indent, places) => {
      const text = JSON.stringify(value, null, indent);
      const parsed = JSON.parse(text) as Record<string, unknown>;
      const reader = read(text, places);
      for (const path of PATHS) {
        const [first = "", second] = path.split(".");
        const outer = parsed[first];
        const isObject = typeof outer === "object" && outer !== null && !Array.isArray(outer);
        const member = second === undefined ? outer : isObject ? (outer as Record<string, unknown>)[second] : undefined;
        expect(reader.value(path)).toEqual(member);
      }
    });
    fc.assert(property, { numRuns: 500 });
  });

  test.each([
    ["in a string", '{"choices":[{"text":"\\"usage\\":{\\"prompt_tokens\\":1}"}]}'],
    ["at a deeper level", '{"response":{"tools":[{"usage":{"input_tokens":1}}]},"x":{"usage":1}}'],
    ["in a list", '[{"usage":1}]'],
    ["as a value", '{"a":"usage","b":{"c":"error"}}'],
  ])("are not found %s", (_name, text) => {
    for (const path of PATHS) expect(read(text).text(path)).toBeUndefined();
  });

  test("are skipped if they are too long, and later members are read", () => {
    const reader = read(`{"error":"${"x".repeat(10_000)}","usage":{"prompt_tokens":3}}`, [5000, 9000]);
    expect(reader.text("error")).toBeNull();
    expect(reader.value("usage")).toEqual({ prompt_tokens: 3 });
  });

  test("can be read from an object of any size", () => {
    const reader = new MemberReader(PATHS);
    reader.push(Buffer.from('{"output":["'));
    for (let piece = 0; piece < 1000; piece++) reader.push(Buffer.alloc(10_000, "a{[:,"));
    reader.push(Buffer.from('"],"usage":{"input_tokens":1}}'));
    expect(reader.value("usage")).toEqual({ input_tokens: 1 });
  });

  test("are empty for input that is not JSON, without an error", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'{}[]":,\\ausgeror.'.split("")) }), (text) => {
        const reader = read(text);
        for (const path of PATHS) reader.value(path);
      }),
    );
  });
});
