import { describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { anyText, boundedArray, cutText, nameSchema, withoutTrailing } from "./text.ts";

describe("names", () => {
  test("are trimmed, and otherwise unchanged", () => {
    for (const name of ["ein Projekt ✓", "👩‍👩‍👧 é é", `'"; drop table project; --`, "<script>", "x".repeat(80)]) {
      expect(nameSchema.parse(`  ${name} `)).toBe(name);
    }
  });

  test.each(["", " ", "x".repeat(81), "x".repeat(10_000), "a\nb", "\0", "\u001b[31m", "\u0085", 5, null])(
    "cannot be %j",
    (name) => {
      expect(nameSchema.safeParse(name).success).toBe(false);
    },
  );

  test("contain no half of a surrogate pair, which no store would return", () => {
    for (const name of ["\ud800", "a\udfffb", "\udc00\ud800"]) {
      expect(nameSchema.safeParse(name).success).toBe(false);
    }
  });
});

test("text from any program is kept, except for what PostgreSQL cannot store", () => {
  expect(anyText(8).parse("a\0b\n\u001b")).toBe("a\ufffdb\n\u001b");
});

test("text that is too long is cut between characters, and marked as cut", () => {
  expect(cutText("abc", 3)).toBe("abc");
  expect(cutText("abcd", 3)).toBe("ab…");
  expect(cutText("a👩b", 3)).toBe("a…");
  expect(cutText("abc", 0)).toBe("");
});

test("a list that is too long is rejected before its items are read", () => {
  const read = vi.fn(() => true);
  const list = boundedArray(z.unknown().refine(read), 2);
  expect(list.parse([1, 2])).toEqual([1, 2]);
  read.mockClear();
  expect(list.safeParse([1, 2, 3]).error?.issues).toHaveLength(1);
  expect(read).not.toHaveBeenCalled();
  expect(list.safeParse("x").success).toBe(false);
});

test.each([
  ["a///", "/", "a"],
  ["///", "/", ""],
  ["/a/b", "/", "/a/b"],
  ["", "/", ""],
])("%j without %j at its end is %j", (text, character, expected) => {
  expect(withoutTrailing(text, character)).toBe(expected);
});
