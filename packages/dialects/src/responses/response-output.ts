import { z } from "zod";
import { type Logprobs, logprobsSchema } from "../chat/logprobs.ts";

/** Reads the items of a response for conversion to the chat dialect. */

/** `part` identifies the position in the item: pieces with the same value form one text. */
export type OutputPiece =
  | {
      readonly kind: "text";
      readonly part: string;
      readonly text: string;
      readonly logprobs: Logprobs;
      readonly annotations: readonly unknown[];
    }
  | { readonly kind: "refusal" | "thinking"; readonly part: string; readonly text: string }
  | ResponseCallPiece;

export interface ResponseCallPiece {
  readonly kind: "call";
  readonly part: "call";
  readonly type: "function" | "custom";
  readonly id: string;
  readonly name: string;
  /** Arguments or input. */
  readonly text: string;
}

const text = z.string().catch("");
const contentPart = z.looseObject({
  type: z.string(),
  text,
  refusal: text,
  logprobs: logprobsSchema.catch([]),
  annotations: z.array(z.unknown()).catch([]),
});
const itemSchema = z.looseObject({
  type: z.string(),
  id: text,
  call_id: text,
  name: text,
  arguments: text,
  input: text,
  content: z.array(contentPart).catch([]),
  summary: z.array(z.object({ text })).catch([]),
});

type Item = z.infer<typeof itemSchema>;

/** @returns nothing for items that the chat dialect cannot express: hosted tools, whose result is in the text. */
export function piecesOf(value: unknown): readonly OutputPiece[] {
  const { data: item } = itemSchema.safeParse(value);
  if (!item) return [];
  switch (item.type) {
    case "message":
      return item.content.flatMap(messagePiece);
    case "reasoning":
      return thinkingPieces(item);
    case "function_call":
      return [callPiece(item, "function", item.arguments)];
    case "custom_tool_call":
      return [callPiece(item, "custom", item.input)];
    default:
      return [];
  }
}

function messagePiece(part: z.infer<typeof contentPart>, index: number): OutputPiece[] {
  if (part.type === "refusal") return [{ kind: "refusal", part: `content ${index}`, text: part.refusal }];
  if (part.type !== "output_text") return [];
  const { text: said, logprobs, annotations } = part;
  return [{ kind: "text", part: `content ${index}`, text: said, logprobs, annotations }];
}

/** Upstreams send thinking as a summary, as is, or both; then the summary, which is meant for people, is used. */
function thinkingPieces({ summary, content }: Item): OutputPiece[] {
  if (summary.length > 0)
    return summary.map((each, at) => ({ kind: "thinking", part: `summary ${at}`, text: each.text }));
  return content.map((each, at) => ({ kind: "thinking", part: `thinking ${at}`, text: each.text }));
}

const callPiece = ({ call_id, id, name }: Item, type: ResponseCallPiece["type"], given: string): ResponseCallPiece => ({
  kind: "call",
  part: "call",
  type,
  id: call_id || id,
  name,
  text: given,
});

export type ResponseEnd = { readonly finish: "stop" | "length" | "content_filter" } | { readonly finish: "failed" };

const endSchema = z.object({
  status: z.string().catch("completed"),
  incomplete_details: z.object({ reason: z.string() }).nullable().catch(null),
});

/** How a response ended, in the terms of the chat dialect. */
export function endOf(response: unknown): ResponseEnd {
  const { status, incomplete_details: details } = endSchema.parse(response);
  if (status === "completed") return { finish: "stop" };
  if (status !== "incomplete") return { finish: "failed" };
  return { finish: details?.reason === "content_filter" ? "content_filter" : "length" };
}
