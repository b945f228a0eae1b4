import type { JsonObject } from "../inference/bridge/wire.ts";
import type { Candidate } from "../inference/model-catalog.ts";

/** How much history a model can be given. Pure. */

/** Of a model whose context nobody told. */
const UNKNOWN_CONTEXT_TOKENS = 65_536;
/** What is left for an answer whose length nobody limits, of the whole context. */
const ANSWER_SHARE = 0.25;
const MOST_ANSWER_TOKENS = 8192;
/** However long the answer may get, the turn itself has to be seen. */
const LEAST_INPUT_SHARE = 0.25;

const LIMIT_FIELDS = ["max_output_tokens", "max_completion_tokens", "max_tokens"];

/** @returns tokens of input: the smallest context of the places that may serve the call, less its answer. */
export function inputTokensOf(candidates: readonly Candidate[], body: JsonObject): number {
  const rooms = candidates.map(({ contextTokens, maxOutputTokens }) => {
    const context = contextTokens ?? UNKNOWN_CONTEXT_TOKENS;
    const usual = Math.min(maxOutputTokens ?? MOST_ANSWER_TOKENS, MOST_ANSWER_TOKENS, context * ANSWER_SHARE);
    return Math.max(context - (limitOf(body) ?? usual), context * LEAST_INPUT_SHARE);
  });
  return Math.floor(Math.min(...rooms));
}

function limitOf(body: JsonObject): number | null {
  const limits = LIMIT_FIELDS.flatMap((name) => (typeof body[name] === "number" ? [body[name]] : []));
  return limits.length === 0 ? null : Math.max(...limits);
}
