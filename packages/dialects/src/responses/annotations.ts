import type { ChatCompletionMessage } from "openai/resources/chat/completions/completions";
import type { ResponseOutputText } from "openai/resources/responses/responses";
import { z } from "zod";

/** Citations of web pages, nested in chat completions and flat in responses. Others exist in responses only, and are left out. */

const citation = z.object({
  url: z.string(),
  title: z.string().catch(""),
  start_index: z.number().catch(0),
  end_index: z.number().catch(0),
});
const nested = z.object({ type: z.literal("url_citation"), url_citation: citation });
const flat = citation.extend({ type: z.literal("url_citation") });

export function toResponseAnnotations(annotations: readonly unknown[]): ResponseOutputText.URLCitation[] {
  return annotations.flatMap((each) => {
    const { data } = nested.safeParse(each);
    return data ? [{ type: data.type, ...data.url_citation }] : [];
  });
}

export function toChatAnnotations(annotations: readonly unknown[]): ChatCompletionMessage.Annotation[] {
  return annotations.flatMap((each) => {
    const { data } = flat.safeParse(each);
    if (!data) return [];
    const { type, ...url_citation } = data;
    return [{ type, url_citation }];
  });
}
