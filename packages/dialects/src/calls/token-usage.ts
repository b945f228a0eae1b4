import { DIALECT_SPECS } from "../dialect-specs.ts";
import type { Dialect } from "./dialect.ts";

/** Tokens used by a call, as counted by the upstream. Non-negative integers. */
export interface TokenUsage {
  readonly inputTokens: number;
  /** Input tokens that the upstream read from its cache. */
  readonly cachedInputTokens: number;
  /** Includes thinking. */
  readonly outputTokens: number;
  /** Output tokens spent on thinking. */
  readonly reasoningTokens: number;
}

/**
 * Upstreams omit counts or send null; both become zero.
 * @param usage the field `usage` of a response, parsed.
 * @returns null if it contains no count.
 */
export function readUsage(dialect: Dialect, usage: unknown): TokenUsage | null {
  const { input, output } = DIALECT_SPECS[dialect].usage;
  const inputTokens = count(usage, input);
  // Some upstreams include thinking only in the total.
  const outputTokens = Math.max(count(usage, output), count(usage, "total_tokens") - inputTokens);
  if (inputTokens === 0 && outputTokens === 0) return null;
  return {
    inputTokens,
    cachedInputTokens: Math.min(count(member(usage, `${input}_details`), "cached_tokens"), inputTokens),
    outputTokens,
    reasoningTokens: Math.min(count(member(usage, `${output}_details`), "reasoning_tokens"), outputTokens),
  };
}

function count(object: unknown, name: string): number {
  const value = member(object, name);
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : 0;
}

function member(object: unknown, name: string): unknown {
  return typeof object === "object" && object !== null ? (object as Record<string, unknown>)[name] : undefined;
}

/** Approximate bytes per token of plain text, for estimates without an upstream's count. */
export const BYTES_PER_TOKEN = 4;
