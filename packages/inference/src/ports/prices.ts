import type { TokenUsage } from "@fairlead/dialects/calls/token-usage";
import { MAX_NANO_DOLLARS } from "@fairlead/protocol/values/money";
import { z } from "zod";

/** Prices of a model. Pure. */

const price = z.number().int().min(0).max(MAX_NANO_DOLLARS);

/** Nano-dollars: per million tokens, and per request. */
export const pricesSchema = z.strictObject({
  input: price.describe("Nano-dollars per million input tokens."),
  cachedInput: price
    .optional()
    .describe(
      "Nano-dollars per million input tokens that the upstream read from its cache. Default: the price of `input`.",
    ),
  output: price.describe("Nano-dollars per million output tokens, including reasoning."),
  perRequest: price.default(0).describe("Nano-dollars per call that generated output."),
});
export type Prices = z.output<typeof pricesSchema>;

export const FREE: Prices = { input: 0, output: 0, perRequest: 0 };

const MILLION = 1_000_000n;

/** @returns nano-dollars, rounded up once, capped at the maximum amount. */
export function costOf(
  usage: Pick<TokenUsage, "inputTokens" | "cachedInputTokens" | "outputTokens">,
  prices: Prices,
): number {
  const { input, output, perRequest } = prices;
  const cachedInput = prices.cachedInput ?? input;
  const fresh = usage.inputTokens - usage.cachedInputTokens;
  const perMillion =
    times(fresh, input) + times(usage.cachedInputTokens, cachedInput) + times(usage.outputTokens, output);
  const cost = (perMillion + MILLION - 1n) / MILLION + BigInt(perRequest);
  return cost > BigInt(MAX_NANO_DOLLARS) ? MAX_NANO_DOLLARS : Number(cost);
}

function times(tokens: number, nanoDollars: number): bigint {
  return BigInt(tokens) * BigInt(nanoDollars);
}
