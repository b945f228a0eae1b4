import type { Dialect } from "./dialect.ts";

/** What a call used, in the upstream's own tokens. Whole numbers, never negative. */
export interface TokenUsage {
  readonly inputTokens: number;
  /** Of the input, those that the upstream had in its cache. */
  readonly cachedInputTokens: number;
  /** Thinking included. */
  readonly outputTokens: number;
  /** Of the output, those spent on thinking. */
  readonly reasoningTokens: number;
}

const NAMES: Readonly<Record<Dialect, { readonly input: string; readonly output: string }>> = {
  chat: { input: "prompt_tokens", output: "completion_tokens" },
  responses: { input: "input_tokens", output: "output_tokens" },
};

/**
 * Upstreams leave counts out, or send null: what is no count is zero.
 * @param usage the member `usage` of an answer, parsed.
 * @returns null where it tells no count.
 */
export function readUsage(dialect: Dialect, usage: unknown): TokenUsage | null {
  const { input, output } = NAMES[dialect];
  const inputTokens = count(usage, input);
  // Some upstreams count thinking in the total alone.
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

/** A token of plain text is about this long: by it, what no upstream counted is estimated. */
export const BYTES_PER_TOKEN = 4;
