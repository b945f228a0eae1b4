import { formatDollars, MAX_NANO_DOLLARS, NANO_PER_DOLLAR } from "@fairlead/protocol/values/money";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { costOf, pricesSchema } from "./prices.ts";

describe("dollars", () => {
  test.each([
    [25_000_000_000, "$25.00"],
    [1, "$0.000000001"],
    [12_500_000_000, "$12.50"],
    [-42, "-$0.000000042"],
    [MAX_NANO_DOLLARS, "$9000000.00"],
  ])("%d nano-dollars are %s", (nano, text) => {
    expect(formatDollars(nano)).toBe(text);
  });
});

describe("the cost of a call", () => {
  const tokens = fc.integer({ min: 0, max: 10_000_000 });
  const price = fc.integer({ min: 0, max: 1_000_000_000_000 });

  test("is exact, and is rounded up once", () => {
    const prices = { input: 1, cachedInput: 1, output: 1, perRequest: 7 };
    expect(costOf({ inputTokens: 1, cachedInputTokens: 1, outputTokens: 1 }, prices)).toBe(8);
    expect(costOf({ inputTokens: 500_000, cachedInputTokens: 0, outputTokens: 500_000 }, prices)).toBe(8);
    expect(costOf({ inputTokens: 500_001, cachedInputTokens: 0, outputTokens: 500_000 }, prices)).toBe(9);
  });

  // BerriAI/litellm#22726: a price for a million tokens was taken as one for a token.
  test("is calculated with prices per million tokens", () => {
    const prices = pricesSchema.parse({ input: 3 * NANO_PER_DOLLAR, output: 15 * NANO_PER_DOLLAR });
    const cost = costOf({ inputTokens: 2000, cachedInputTokens: 0, outputTokens: 400 }, prices);
    expect(formatDollars(cost)).toBe("$0.012");
  });

  test("never falls when usage grows, and is always an integer that a store can hold", () => {
    fc.assert(
      fc.property(fc.tuple(tokens, tokens, tokens), price, price, ([input, output, more], inputPrice, outputPrice) => {
        const prices = { input: inputPrice, output: outputPrice, perRequest: 0 };
        const less = costOf({ inputTokens: input, cachedInputTokens: 0, outputTokens: output }, prices);
        const greater = costOf({ inputTokens: input, cachedInputTokens: 0, outputTokens: output + more }, prices);
        expect(greater).toBeGreaterThanOrEqual(less);
        expect(Number.isSafeInteger(greater)).toBe(true);
        expect(greater).toBeLessThanOrEqual(MAX_NANO_DOLLARS);
      }),
    );
  });

  test("uses the price of cached input, or the price of input if there is none", () => {
    const usage = { inputTokens: 1_000_000, cachedInputTokens: 1_000_000, outputTokens: 0 };
    expect(costOf(usage, { input: 10, cachedInput: 1, output: 0, perRequest: 0 })).toBe(1);
    expect(costOf(usage, { input: 10, output: 0, perRequest: 0 })).toBe(10);
  });

  test.each([{ input: -1, output: 0 }, { input: 0.5, output: 0 }, { input: 1 }, { input: 1, output: 1, other: 1 }])(
    "cannot be computed from invalid prices: %j",
    (prices) => {
      expect(pricesSchema.safeParse(prices).success).toBe(false);
    },
  );
});
