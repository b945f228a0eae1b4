import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { titleOf, titleSchema } from "./chat-title.ts";

describe("a session's title", () => {
  test.each([
    ["How do I rotate a key?", "How do I rotate a key?"],
    ["  two\n\nlines\tand\u0000more ", "two lines and more"],
    ["", ""],
    ["Send \u202egpj.exe\u202c \u2066now\u2069", "Send gpj.exe now"],
    ["\u202e\u2067", ""],
    [
      "How do I rotate the keys of a project without anybody noticing it?",
      "How do I rotate the keys of a project without anybody…",
    ],
    ["a".repeat(80), `${"a".repeat(59)}…`],
    [`${"word ".repeat(11)}1234`, `${"word ".repeat(11)}1234`],
  ])("for %j is %j", (question, title) => {
    expect(titleOf(question)).toBe(title);
  });

  test("set by a user is stripped of direction marks too, and rejected if nothing else is left", () => {
    expect(titleSchema.parse("\u202etxt.exe\u202c")).toBe("txt.exe");
    expect(titleSchema.safeParse("\u2066\u2069 ").success).toBe(false);
  });

  test("is never cut inside what a reader sees as one character", () => {
    const family = "\u{1F468}\u200D\u{1F469}\u200D\u{1F467}";
    expect(titleOf(family.repeat(80))).toBe(`${family.repeat(59)}…`);
    const accented = "e\u0301";
    expect(titleOf(accented.repeat(80))).toBe(`${accented.repeat(59)}…`);
    expect(titleOf("हिन्दी".repeat(40)).endsWith("…")).toBe(true);
  });

  test("is one line of limited length and of whole characters, for any question", () => {
    const segmenter = new Intl.Segmenter("en", { granularity: "grapheme" });
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 300 }), (question) => {
        const title = titleOf(question);
        expect(title).toMatch(/^[^\p{Cc}\p{Cs}]*$/u);
        expect(title).toBe(title.trim());
        expect(Array.from(segmenter.segment(title)).length).toBeLessThanOrEqual(60);
        expect(titleOf(title)).toBe(title);
      }),
    );
  });

  test("is found for the text of a book without reading all of it", () => {
    expect(titleOf(`${"word ".repeat(1_000_000)}`)).toBe(`${"word ".repeat(11)}word…`);
  });
});
