import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseExact, parseStoredExact } from "./exact-json.ts";

const roundTrip = (text: string): string => JSON.stringify(parseExact(text));

/** `-1.25e+30` is an integer too. */
function integer(text: string): bigint {
  const [digits = "", exponent = "0"] = text.split("e");
  const [whole = "", fraction = ""] = digits.split(".");
  return BigInt(whole + fraction) * 10n ** BigInt(Number(exponent) - fraction.length);
}

describe("exact JSON", () => {
  test.each([
    "9223372036854775807",
    "-9007199254740993",
    "1e400",
    "-1e-400",
    "0.1234567890123456789012345678901",
    "123456789012345678901234567890",
    "1.7976931348623157e309",
  ])("preserves %s, which a double cannot represent", (number) => {
    expect(roundTrip(`{"a":[${number},1]}`)).toBe(`{"a":[${number},1]}`);
  });

  test.each([
    ["1.0", 1],
    ["1.50e0", 1.5],
    ["100000000000000000000", 1e20],
    ["0.10000000000000000000000", 0.1],
    ["-0", -0],
    ["5e-324", 5e-324],
  ])("reads %s as a number", (text, number) => {
    expect(parseExact(text)).toBe(number);
  });

  test("does not change strings that look like numbers", () => {
    const text = '{"id":"12345678901234567890","arguments":"{\\"n\\":12345678901234567890}"}';
    expect(roundTrip(text)).toBe(text);
  });

  test("treats __proto__ as an ordinary key", () => {
    const text = '{"__proto__":{"polluted":true},"big":12345678901234567890}';
    expect(roundTrip(text)).toBe(text);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });

  test("round-trips everything that JSON.parse accepts", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(parseExact(text)).toEqual(JSON.parse(text));
      }),
    );
  });

  test("round-trips numbers of any form between values of any form", () => {
    const digits = (max: number) => fc.stringMatching(new RegExp(`^[0-9]{1,${max}}$`));
    const number = fc
      .tuple(fc.boolean(), fc.integer({ min: 1, max: 9 }), digits(25), fc.option(digits(25)), fc.option(digits(4)))
      .map(([minus, first, rest, fraction, exponent]) => {
        const whole = `${minus ? "-" : ""}${first}${rest}`;
        return `${whole}${fraction === null ? "" : `.${fraction}`}${exponent === null ? "" : `e${exponent}`}`;
      });
    const text = fc
      .string({ unit: fc.constantFrom("\\", '"', "1", "e", "9", ":", ",", "[") })
      .map((it) => JSON.stringify(it));
    fc.assert(
      fc.property(fc.array(fc.tuple(text, number, text)), (members) => {
        const json = `[${members.map(([key, n, value]) => `{${key}:${n},"b":[${n} , ${value}]}`).join(",")}]`;
        const exact = JSON.stringify(parseExact(json));
        expect(JSON.parse(exact)).toEqual(JSON.parse(json));
        for (const [, n] of members) if (!Number.isFinite(Number(n))) expect(exact).toContain(n);
      }),
    );
  });

  test("preserves integers of any length", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(10n ** 60n), max: 10n ** 60n }), (number) => {
        expect(integer(roundTrip(String(number)))).toBe(number);
      }),
    );
  });

  test.each([
    ["truncated text", '{"a":'],
    ["text that is nested too deeply", "[".repeat(65) + "]".repeat(65)],
    ["nesting deep enough to overflow the stack", "[".repeat(200_000) + "]".repeat(200_000)],
    ["too many values", `[${"[],".repeat(600_000)}1]`],
    ["a long number with two decimal points", "[1234567890.1234567890.5]"],
    ["a long number with leading zeros", "[00012345678901234567890]"],
    ["a long number followed by a letter", "[12345678901234567890x]"],
    ["a long number with two signs", "[--12345678901234567890]"],
    ["a long number in place of a key", '{"a":1,12345678901234567890 : 1}'],
    [
      "text that is nested too deeply around a long number",
      `${"[".repeat(20_000)}12345678901234567890${"]".repeat(20_000)}`,
    ],
  ])("rejects %s, without quoting it", (_what, text) => {
    expect(() => parseExact(text)).toThrow(expect.objectContaining({ code: "malformed_json" }));
    expect(() => parseExact(text)).not.toThrow(text.slice(0, 5));
  });
});

test("more than 10,000 numbers that a double cannot represent are rejected, because each is expensive to parse", () => {
  const numbers = (count: number): string => `[${Array<string>(count).fill("12345678901234567890").join(",")}]`;
  expect(parseExact(numbers(10_000))).toHaveLength(10_000);
  expect(() => parseExact(numbers(10_001))).toThrow("more than 10000 very long numbers");
  expect(parseStoredExact(numbers(10_001))).toHaveLength(10_001);
});
