import type { CompletionUsage } from "openai/resources/completions";
import type { ResponseUsage } from "openai/resources/responses/responses";
import { z } from "zod";
import { without } from "../json/parse.ts";

/** Converts usage between dialects. Missing counts become zero; unknown fields are passed through. */

const count = z.number().int().nonnegative().catch(0);
const details = z
  .object({ cached_tokens: count, cache_write_tokens: count, reasoning_tokens: count })
  .catch({ cached_tokens: 0, cache_write_tokens: 0, reasoning_tokens: 0 });
const total = z.number().int().nonnegative().optional().catch(undefined);

const chatUsage = z.looseObject({
  prompt_tokens: count,
  completion_tokens: count,
  total_tokens: total,
  prompt_tokens_details: details,
  completion_tokens_details: details,
});
const CHAT_KEYS = Object.keys(chatUsage.shape);

const responseUsage = z.looseObject({
  input_tokens: count,
  output_tokens: count,
  total_tokens: total,
  input_tokens_details: details,
  output_tokens_details: details,
});
const RESPONSE_KEYS = Object.keys(responseUsage.shape);

/** @param usage of a chat completion; null if the upstream sent none. */
export function toResponseUsage(usage: unknown): ResponseUsage {
  const read = chatUsage.parse(usage ?? {});
  const { prompt_tokens: input, completion_tokens: output, prompt_tokens_details: cached } = read;
  return {
    ...without(read, CHAT_KEYS),
    input_tokens: input,
    input_tokens_details: { cached_tokens: cached.cached_tokens, cache_write_tokens: cached.cache_write_tokens },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: read.completion_tokens_details.reasoning_tokens },
    total_tokens: read.total_tokens ?? input + output,
  };
}

/** @param usage of a response; null if the upstream sent none. */
export function toChatUsage(usage: unknown): CompletionUsage {
  const read = responseUsage.parse(usage ?? {});
  const { input_tokens: input, output_tokens: output, input_tokens_details: cached } = read;
  return {
    ...without(read, RESPONSE_KEYS),
    prompt_tokens: input,
    prompt_tokens_details: { cached_tokens: cached.cached_tokens, cache_write_tokens: cached.cache_write_tokens },
    completion_tokens: output,
    completion_tokens_details: { reasoning_tokens: read.output_tokens_details.reasoning_tokens },
    total_tokens: read.total_tokens ?? input + output,
  };
}
