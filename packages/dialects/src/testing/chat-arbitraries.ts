import fc from "fast-check";
import { callChunk, chunk, usageChunk } from "../convert/bridge.fixture.ts";
import type { JsonObject } from "../convert/wire.ts";

/** Answers of a chat upstream, and the streams that they may come as. */

export interface ChatAnswer {
  readonly thinking: string;
  readonly text: string;
  readonly refusal: string;
  readonly calls: readonly { readonly id: string; readonly name: string; readonly args: string }[];
  readonly finish: string;
}

const text = fc.string({ unit: "grapheme", maxLength: 40 });
const call = fc.record({
  id: fc.constantFrom("call_a", "call_b", "call_c", ""),
  name: fc.constantFrom("look", "find", "patch"),
  args: fc.oneof(
    fc.constant(""),
    fc.json({ maxDepth: 2 }),
    text.map((input) => JSON.stringify({ input })),
  ),
});

export const chatAnswer: fc.Arbitrary<ChatAnswer> = fc.record({
  thinking: text,
  text,
  refusal: fc.oneof({ weight: 3, arbitrary: fc.constant("") }, { weight: 1, arbitrary: text }),
  calls: fc.array(call, { maxLength: 4 }),
  finish: fc.constantFrom("stop", "tool_calls", "length", "content_filter"),
});

export const wholeAnswer = (answer: ChatAnswer): JsonObject => ({
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 1,
  model: "tiny-q4",
  choices: [
    {
      index: 0,
      finish_reason: answer.finish,
      message: {
        role: "assistant",
        content: answer.text,
        reasoning_content: answer.thinking,
        refusal: answer.refusal,
        tool_calls: answer.calls.map(({ id, name, args }) => ({
          id,
          type: "function",
          function: { name, arguments: args },
        })),
      },
    },
  ],
  usage: usageChunk["usage"],
});

/** Cuts of a text; the pieces joined are the text, and some may be empty. */
function pieces(value: string, cuts: readonly number[]): string[] {
  const places = cuts.map((cut) => cut % (value.length + 1)).toSorted((a, b) => a - b);
  return [0, ...places].map((from, index) => value.slice(from, places[index]));
}

export interface Chunking {
  readonly cuts: readonly number[];
  /** Picks the call that the next piece belongs to; and whether two chunks become one. */
  readonly picks: readonly number[];
}

export const chunking: fc.Arbitrary<Chunking> = fc.record({
  cuts: fc.array(fc.nat(60), { maxLength: 4 }),
  picks: fc.array(fc.nat(7), { minLength: 1, maxLength: 12 }),
});

/** The answer as chunks, cut and interleaved; usage last, with or without the finish. */
export function chunksOf(answer: ChatAnswer, { cuts, picks }: Chunking): JsonObject[] {
  const words = [
    ...pieces(answer.thinking, cuts).map((reasoning_content) => chunk({ reasoning_content })),
    ...pieces(answer.text, cuts).map((content) => chunk({ content })),
    ...pieces(answer.refusal, cuts).map((refusal) => chunk({ refusal })),
  ];
  return [
    chunk({ role: "assistant", content: "" }),
    ...words,
    ...interleaved(answer, { cuts, picks }),
    chunk({}, answer.finish),
    usageChunk,
  ];
}

/** Calls begin in order, and their arguments come in any. */
function interleaved(answer: ChatAnswer, { cuts, picks }: Chunking): JsonObject[] {
  const waiting = answer.calls.map(({ args }) => pieces(args, cuts));
  const begun = new Set<number>();
  const chunks: JsonObject[] = [];
  for (let step = 0; waiting.some((rest) => rest.length > 0); step++) {
    const open = waiting.flatMap((rest, index) => (rest.length > 0 && index <= begun.size ? [index] : []));
    const index = open[(picks[step % picks.length] ?? 0) % open.length] ?? 0;
    const { id, name } = answer.calls[index] ?? { id: "", name: "" };
    chunks.push(callChunk(index, waiting[index]?.shift() ?? "", begun.has(index) ? {} : { id, name }));
    begun.add(index);
  }
  return chunks;
}
