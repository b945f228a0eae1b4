import { z } from "zod";
import type { TokenUsage } from "../inference/token-usage.ts";
import { MAX_NANO_DOLLARS } from "./money.ts";

/** What a model costs (design §9). Pure. */

const price = z.number().int().min(0).max(MAX_NANO_DOLLARS);

/** Nano-dollars: per million tokens, and per request. */
export const pricesSchema = z.strictObject({
  input: price.describe("Nano-dollars for a million input tokens."),
  cachedInput: price.optional().describe("The same for input that the upstream had in its cache. Default: as `input`."),
  output: price.describe("Nano-dollars for a million output tokens, thinking included."),
  perRequest: price.default(0).describe("Nano-dollars for each call that generated something."),
});
export type Prices = z.output<typeof pricesSchema>;

export const FREE: Prices = { input: 0, output: 0, perRequest: 0 };

const MILLION = 1_000_000n;

/** @returns nano-dollars, rounded up once; never beyond the greatest amount. */
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
