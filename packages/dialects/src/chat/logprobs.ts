import type { ChatCompletionTokenLogprob } from "openai/resources/chat/completions/completions";
import type { ResponseOutputText } from "openai/resources/responses/responses";
import { z } from "zod";

/** Log probabilities of tokens: the same facts in both dialects, but for bytes that are unknown. */

type ResponseLogprob = ResponseOutputText.Logprob;

const bytes = z.array(z.number()).nullish();
const tokenSchema = z.object({ token: z.string(), logprob: z.number(), bytes });
export const logprobsSchema = z.array(tokenSchema.extend({ top_logprobs: z.array(tokenSchema).nullish() }));

export type Logprobs = z.infer<typeof logprobsSchema>;

type Token = z.infer<typeof tokenSchema>;

export function toResponseLogprobs(logprobs: Logprobs): ResponseLogprob[] {
  const convert = ({ token, logprob, bytes: known }: Token): Omit<ResponseLogprob, "top_logprobs"> => ({
    token,
    logprob,
    bytes: known ?? [],
  });
  return logprobs.map((each) => ({ ...convert(each), top_logprobs: (each.top_logprobs ?? []).map(convert) }));
}

export function toChatLogprobs(logprobs: Logprobs): ChatCompletionTokenLogprob[] {
  const convert = ({ token, logprob, bytes: known }: Token): Omit<ChatCompletionTokenLogprob, "top_logprobs"> => ({
    token,
    logprob,
    // The responses dialect has no other way to say that they are unknown.
    bytes: known && known.length > 0 ? known : null,
  });
  return logprobs.map((each) => ({ ...convert(each), top_logprobs: (each.top_logprobs ?? []).map(convert) }));
}
