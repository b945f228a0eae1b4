import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { makeKey, parseKey } from "./key-secret.ts";

describe("the value of a project key", () => {
  test("has a format that scanners can detect and verify: prefix, public ID, secret with checksum", () => {
    const { value, publicId } = makeKey(randomBytes);
    expect(value).toMatch(/^flk_[0-9A-Za-z]{16}_[0-9A-Za-z]{49}$/);
    expect(value.startsWith(`flk_${publicId}_`)).toBe(true);
    expect(parseKey(value)).toEqual({ publicId });
  });

  test("contains at least 32 bytes of randomness besides its public part", () => {
    expect(43 * Math.log2(62)).toBeGreaterThan(256);
  });

  test("is different every time", () => {
    const values = new Set(Array.from({ length: 1000 }, () => makeKey(randomBytes).value));
    expect(values.size).toBe(1000);
  });

  test("uses every character equally often, without modulo bias", () => {
    const counts = new Map<string, number>();
    for (let i = 0; i < 2000; i++) {
      for (const character of makeKey(randomBytes).value.slice(21, 64)) {
        counts.set(character, (counts.get(character) ?? 0) + 1);
      }
    }
    expect(counts.size).toBe(62);
    const expected = (2000 * 43) / 62;
    // Eight standard deviations: a biased choice (256 mod 62) is off by a fifth.
    for (const count of counts.values()) expect(Math.abs(count - expected)).toBeLessThan(8 * Math.sqrt(expected));
  });

  test("is invalid with any one character changed", () => {
    const { value } = makeKey(randomBytes);
    fc.assert(
      fc.property(fc.nat(value.length - 1), fc.string({ minLength: 1, maxLength: 1 }), (at, character) => {
        fc.pre(value.charAt(at) !== character);
        expect(parseKey(value.slice(0, at) + character + value.slice(at + 1))).toBeNull();
      }),
    );
  });

  test("is invalid if it is cut short, padded, or of another kind", () => {
    const { value } = makeKey(randomBytes);
    for (const text of ["", "flk_", value.slice(0, -1), `${value}x`, ` ${value}`, `${value}\n`, value.toUpperCase()]) {
      expect(parseKey(text)).toBeNull();
    }
  });

  test("is detected and verified by the description for scanners in docs/keys.md", () => {
    const page = readFileSync(new URL("../../../../../docs/keys.md", import.meta.url), "utf8");
    const documented = /^\\bflk_.*$/m.exec(page)?.[0] ?? "";
    const { value } = makeKey(randomBytes);
    expect(`token=${value};`.match(new RegExp(documented))?.[0]).toBe(value);
    const example = /`(flk_0[0-9A-Za-z_]+)`/.exec(page)?.[1] ?? "";
    expect(parseKey(example)).toEqual({ publicId: "0".repeat(16) });
  });
});
