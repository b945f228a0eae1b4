import { describe, expect, test } from "vitest";
import { anyText, nameSchema } from "./text.ts";

describe("names", () => {
  test("are trimmed, and kept as they are otherwise", () => {
    for (const name of ["ein Projekt ✓", "👩‍👩‍👧 é é", `'"; drop table project; --`, "<script>", "x".repeat(80)]) {
      expect(nameSchema.parse(`  ${name} `)).toBe(name);
    }
  });

  test.each(["", " ", "x".repeat(81), "x".repeat(10_000), "a\nb", "\0", "\u001b[31m", "\u0085", 5, null])(
    "%j is none",
    (name) => {
      expect(nameSchema.safeParse(name).success).toBe(false);
    },
  );

  test("hold no half of a character, which no store would give back", () => {
    for (const name of ["\ud800", "a\udfffb", "\udc00\ud800"]) {
      expect(nameSchema.safeParse(name).success).toBe(false);
    }
  });
});

test("a text of any program is kept, but for what PostgreSQL cannot hold", () => {
  expect(anyText().parse("a\0b\n\u001b")).toBe("a\ufffdb\n\u001b");
});
