import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CustomToolInput } from "./custom-tool-input.ts";

function read(pieces: readonly string[]): { text: string; deltas: string[] } {
  const reader = new CustomToolInput();
  const deltas = [...pieces.map((piece) => reader.push(piece)), reader.end()];
  return { text: deltas.join(""), deltas };
}

/** Cuts a text at the given places. */
const cut = (text: string, places: readonly number[]): string[] =>
  [0, ...places.map((place) => place % (text.length + 1)).toSorted((a, b) => a - b)].map((from, index, all) =>
    text.slice(from, all[index + 1]),
  );

describe("the input of a free-form tool", () => {
  test("is restored from its arguments, however they are split, and never contains half a surrogate pair", () => {
    const text = fc.string({ unit: "binary" });
    fc.assert(
      fc.property(text, fc.array(fc.nat(200)), fc.boolean(), (input, places, spaced) => {
        const args = spaced ? ` { "input" : ${JSON.stringify(input)} } ` : JSON.stringify({ input });
        const result = read(cut(args, places));
        expect(result.text).toBe(input.toWellFormed() === input ? input : result.text);
        for (const delta of result.deltas) expect(delta.isWellFormed()).toBe(true);
      }),
    );
  });

  test("is restored from escaped surrogate pairs, however they are split", () => {
    const args = '{"input":"a\\ud83d\\ude00b\\u00e9\\n\\/"}';
    for (let at = 0; at <= args.length; at++) {
      const { text, deltas } = read([args.slice(0, at), args.slice(at)]);
      expect(text).toBe("a😀bé\n/");
      expect(deltas.every((delta) => delta.isWellFormed())).toBe(true);
    }
  });

  test("is available while it arrives", () => {
    const reader = new CustomToolInput();
    expect(reader.push('{"input":"one ')).toBe("one ");
    expect(reader.push("two")).toBe("two");
  });

  test.each([
    ["bare text", "*** Begin Patch", "*** Begin Patch"],
    ["`input` after another key", '{"why":"x","input":"y"}', "y"],
    ["an object without `input`", '{"patch":"y"}', '{"patch":"y"}'],
    ["a bare string", '"y"', '"y"'],
    ["nothing", "", ""],
    ["thousands of blanks", " ".repeat(5000), " ".repeat(5000)],
  ])("is exactly what the model wrote for %s", (_what, args, input) => {
    expect(read([args]).text).toBe(input);
    expect(read(args.split("")).text).toBe(input);
  });

  test("is the part that arrived if the arguments are truncated", () => {
    expect(read(['{"input":"half a \\ud8']).text).toBe("half a ");
  });
});
