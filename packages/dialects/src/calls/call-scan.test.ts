import { DomainError } from "@fairlead/protocol/errors";
import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { splice } from "../json/splice.ts";
import { type CallScan, scanCall } from "./call-scan.ts";

const scan = (text: string): CallScan => scanCall([Buffer.from(text)], "chat");

function refusal(text: string): Pick<DomainError, "code" | "param"> {
  try {
    scan(text);
  } catch (error) {
    if (error instanceof DomainError) return { code: error.code, param: error.param };
    throw error;
  }
  throw new Error(`accepted: ${text}`);
}

/** Cuts a Buffer at the given places, which may leave empty pieces. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const at = [0, ...places.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return at.slice(1).map((end, index) => bytes.subarray(at[index], end));
}

/** JSON text with white space and escapes where they are allowed, as some client might write it. */
function render(value: unknown, space: string, escape: boolean): string {
  const string = (text: string): string =>
    escape
      ? `"${Array.from({ length: text.length }, (_, i) => `\\u${text.charCodeAt(i).toString(16).padStart(4, "0")}`).join("")}"`
      : JSON.stringify(text);
  const render1 = (part: unknown): string => {
    if (typeof part === "string") return string(part);
    if (Array.isArray(part)) return `[${space}${part.map(render1).join(`${space},${space}`)}${space}]`;
    if (part !== null && typeof part === "object") {
      const members = Object.entries(part).map(([key, member]) => `${string(key)}${space}:${space}${render1(member)}`);
      return `{${space}${members.join(`${space},${space}`)}${space}}`;
    }
    return JSON.stringify(part);
  };
  return render1(value);
}

const whiteSpace = fc.constantFrom("", " ", "\n", "\r\n\t ");
const otherFields = fc
  .dictionary(fc.string({ unit: "binary" }), fc.jsonValue({ stringUnit: "binary" }), { noNullPrototype: true })
  .map((fields) =>
    Object.fromEntries(Object.entries(fields).filter(([key]) => !/^(model|stream|__proto__)$/i.test(key))),
  );

describe("the scan of a request body", () => {
  test("finds the model at any position, and replacing it changes nothing else", () => {
    const property = fc.property(
      fc.record({
        before: otherFields,
        after: otherFields,
        model: fc.string({ unit: "binary", minLength: 1, maxLength: 100 }),
      }),
      fc.record({ space: whiteSpace, escape: fc.boolean(), cuts: fc.array(fc.nat(), { maxLength: 20 }) }),
      fc.string({ unit: "grapheme", maxLength: 40 }),
      ({ before, after, model }, { space, escape, cuts }, replacement) => {
        const document = { ...before, model, ...after };
        const bytes = Buffer.from(space + render(document, space, escape) + space);
        const pieces = cut(bytes, cuts);
        const found = scanCall(pieces, "chat").model;
        expect(found?.name).toBe(model);
        if (found === null) return;
        const { start, end } = found.span;
        const value = Buffer.from(JSON.stringify(replacement));
        const spliced = Buffer.concat(splice(pieces, [{ ...found.span, bytes: value }]));
        expect(spliced.subarray(0, start).equals(bytes.subarray(0, start))).toBe(true);
        expect(spliced.subarray(spliced.length - (bytes.length - end)).equals(bytes.subarray(end))).toBe(true);
        expect(JSON.parse(spliced.toString())).toEqual(JSON.parse(JSON.stringify({ ...document, model: replacement })));
      },
    );
    fc.assert(property, { numRuns: 300 });
  });

  test("rejects a document that is truncated at any position", () => {
    const property = fc.property(otherFields, fc.nat(), (fields, place) => {
      const bytes = Buffer.from(JSON.stringify({ model: "a/b", ...fields }));
      expect(() => scanCall([bytes.subarray(0, place % bytes.length)], "chat")).toThrow(DomainError);
    });
    fc.assert(property);
  });

  test("throws only DomainErrors, whatever the bytes", () => {
    const fragment = fc.constantFrom(
      "{",
      "}",
      "[",
      "]",
      '"',
      "\\",
      ",",
      ":",
      '"model"',
      "1",
      "true",
      " ",
      "é",
      "\\u00",
    );
    const property = fc.property(fc.array(fragment), fc.array(fc.nat()), (fragments, cuts) => {
      const text = fragments.join("");
      try {
        scanCall(cut(Buffer.from(text), cuts), "chat");
      } catch (error) {
        expect(error).toBeInstanceOf(DomainError);
        return;
      }
      // What passes is balanced: at most a number's digits or a deep escape may be wrong.
      expect(text.trim().startsWith("{")).toBe(true);
      expect(text.trim().endsWith("}")).toBe(true);
    });
    fc.assert(property, { numRuns: 2000 });
  });

  test("does not change numbers beyond double precision", () => {
    const text = '{"seed":12345678901234567890123,"model":"n/m","t":1e400}';
    const found = scan(text).model;
    expect(found && text.slice(found.span.start, found.span.end)).toBe('"n/m"');
  });

  test.each([
    ["an escaped name", '{"\\u006dodel":"n/m"}'],
    ["an escaped value", '{"model":"n\\/m"}'],
  ])("reads the model from %s", (_name, text) => {
    expect(scan(text).model?.name).toBe("n/m");
  });

  test("reads only the top level", () => {
    expect(scan('{"messages":[{"model":"x","model":"y","stream":1}],"model":"n/m"}')).toMatchObject({
      model: { name: "n/m" },
      stream: false,
    });
  });

  test.each([
    ["true", true],
    ["false", false],
    ["null", false],
  ])("reads stream: %s", (value, stream) => {
    expect(scan(`{"stream":${value}}`)).toMatchObject({ model: null, stream });
  });

  test.each([
    ["model twice", '{"model":"a/b","model":"c/d"}', "model"],
    ["model twice, once escaped", '{"model":"a/b","mo\\u0064el":"c/d"}', "model"],
    ["model twice, once capitalized, which some servers treat as the same", '{"model":"a/b","Model":"c/d"}', "model"],
    ["stream twice, once with a letter that folds to s", '{"stream":true,"\u017ftream":false}', "stream"],
    ["model as a number", '{"model":1}', "model"],
    ["model as an empty string", '{"model":""}', "model"],
    ["model as an object", '{"model":{"a":"b"}}', "model"],
    ["model that is too long", `{"model":"${"x".repeat(2000)}"}`, "model"],
    ["stream as a string", '{"stream":"true"}', "stream"],
    ["stream as a number", '{"stream":1}', "stream"],
    ["stream_options twice, once escaped", '{"stream_options":{},"stream\\u005foptions":{}}', "stream_options"],
    ["stream_options as a string", '{"stream_options":"usage"}', "stream_options"],
    ["include_usage twice", '{"stream_options":{"include_usage":true,"Include_Usage":false}}', "include_usage"],
    ["include_usage as a string", '{"stream_options":{"include_usage":"yes"}}', "stream_options.include_usage"],
    ["a limit twice", '{"max_tokens":1,"max_tokens":100000}', "max_tokens"],
    ["a limit twice, once escaped", '{"max_tokens":1,"\\u006dax_tokens":100000}', "max_tokens"],
    ["a limit twice, once in uppercase", '{"max_output_tokens":1,"MAX_OUTPUT_TOKENS":9}', "max_output_tokens"],
  ])("rejects an ambiguous or invalid field: %s", (_name, text, param) => {
    expect(refusal(text)).toEqual({ code: "invalid_request", param });
  });

  test.each([
    ["an empty body", ""],
    ["white space", "  "],
    ["an array", '[{"model":"a/b"}]'],
    ["a string", '"model"'],
    ["half a byte order mark", '\u00ef{"model":"a/b"}'],
    ["a byte order mark in the middle", '{"model":"a/b"}\ufeff'],
    ["data after the object", '{"model":"a/b"} {}'],
    ["a comment", '{/* */"model":"a/b"}'],
    ["single quotes", "{'model':'a/b'}"],
    ["an unquoted name", '{model:"a/b"}'],
    ["a trailing comma", '{"model":"a/b",}'],
    ["a trailing comma in an array", '{"a":[1,]}'],
    ["a missing comma", '{"a":[1 2]}'],
    ["a missing colon", '{"a" 1}'],
    ["a mismatched bracket", '{"a":[1}'],
    ["an unknown literal", '{"a":nil}'],
    ["two joined literals", '{"a":truefalse}'],
    ["NaN", '{"a":NaN}'],
    ["an invalid escape in a routing field name", '{"mod\\xel":1}'],
    ["unclosed nesting", `{"a":${"[".repeat(100_000)}`],
    ["nesting that is too deep", `{"a":${"[".repeat(65)}${"]".repeat(65)}}`],
  ])("rejects %s as malformed", (_name, text) => {
    expect(refusal(text)).toEqual({ code: "malformed_json", param: null });
  });

  test("skips a byte order mark, however it is split", () => {
    const bytes = Buffer.from('\ufeff{"model":"n/m"}');
    for (const pieces of [[bytes], [bytes.subarray(0, 1), bytes.subarray(1, 2), bytes.subarray(2)]]) {
      expect(scanCall(pieces, "chat")).toMatchObject({
        model: { name: "n/m", span: { start: 12, end: 17 } },
        markBytes: 3,
      });
    }
  });

  test("accepts nesting as deep as any realistic call has", () => {
    expect(scan(`{"a":${'[{"b":'.repeat(31)}1${"}]".repeat(31)}}`).model).toBeNull();
  });
});

test("a call that arrives byte by byte is not searched again for each field", () => {
  const value = `[${"1,".repeat(5000)}1]`;
  const pieces = Array.from(Buffer.from(`{"model":${value}}`), (byte) => Buffer.from([byte]));
  const cuts = vi.spyOn(Buffer.prototype, "subarray");
  expect(() => scanCall(pieces, "chat")).toThrow(expect.objectContaining({ param: "model" }));
  expect(cuts.mock.calls.length).toBeLessThan(100);
  cuts.mockRestore();
});
