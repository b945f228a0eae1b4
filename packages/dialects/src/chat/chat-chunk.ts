import { z } from "zod";
import type { JsonObject } from "../convert/wire.ts";
import { type Logprobs, logprobsSchema } from "./logprobs.ts";

/** Reads responses of chat upstreams. They differ and omit fields, so anything that can be understood is accepted. */

const text = z.string().nullish();
/** Some upstreams send thinking and text as parts of one list. */
const contentSchema = z.union([z.string(), z.array(z.looseObject({ type: z.string() }))]).nullish();
const argumentsSchema = z.union([z.string(), z.record(z.string(), z.unknown())]).nullish();
const functionSchema = z.object({ name: text, arguments: argumentsSchema });

const callSchema = z.object({
  index: z.number().int().nonnegative().nullish(),
  id: text,
  function: functionSchema.nullish(),
});

const deltaSchema = z.object({
  content: contentSchema,
  refusal: text,
  reasoning_content: text,
  reasoning: text,
  tool_calls: z.array(callSchema).nullish(),
  function_call: functionSchema.nullish(),
  annotations: z.array(z.unknown()).nullish(),
});

const choiceSchema = z.object({
  index: z.number().nullish(),
  delta: deltaSchema.nullish(),
  message: deltaSchema.nullish(),
  finish_reason: text,
  logprobs: z.object({ content: logprobsSchema.nullish() }).nullish().catch(null),
});

const chunkSchema = z.looseObject({
  service_tier: text,
  choices: z.array(choiceSchema).nullish(),
  usage: z.record(z.string(), z.unknown()).nullish(),
});

/** Fields that the bridge sets itself; all others are passed through. */
const KNOWN = new Set([
  "id",
  "object",
  "created",
  "model",
  "choices",
  "usage",
  "service_tier",
  "system_fingerprint",
  "obfuscation",
  "error",
]);

export interface ChatCallPiece {
  readonly index: number | null;
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

/** Part of a response, or a complete one. */
export interface AnswerPiece {
  readonly thinking: string;
  /** Null if there is no text, which differs from empty text. */
  readonly text: string | null;
  readonly logprobs: Logprobs;
  readonly refusal: string;
  readonly annotations: readonly unknown[];
  readonly calls: readonly ChatCallPiece[];
  readonly finishReason: string | null;
}

export interface ReadChunk {
  readonly serviceTier: string | null;
  readonly usage: JsonObject | null;
  readonly pieces: readonly AnswerPiece[];
  readonly extras: JsonObject;
}

/** @returns null if it is neither a chunk nor a complete chat completion. */
export function readChunk(value: unknown): ReadChunk | null {
  const { data } = chunkSchema.safeParse(value);
  if (!data) return null;
  const first = (data.choices ?? []).filter(({ index }) => (index ?? 0) === 0);
  return {
    serviceTier: data.service_tier ?? null,
    usage: data.usage ?? null,
    pieces: first.map(toPiece),
    extras: Object.fromEntries(Object.entries(data).filter(([name, each]) => !KNOWN.has(name) && each !== null)),
  };
}

function toPiece(choice: z.infer<typeof choiceSchema>): AnswerPiece {
  const delta: z.infer<typeof deltaSchema> = choice.delta ?? choice.message ?? {};
  const { text: said, thinking } = readContent(delta.content);
  const old = delta.function_call ? [{ index: 0, id: "", function: delta.function_call }] : [];
  // In a complete message, a call is identified by its index.
  const place = (index: number): number | null => (choice.delta ? null : index);
  return {
    // Some engines send the same thinking under both names.
    thinking: (delta.reasoning_content || delta.reasoning || "") + thinking,
    text: said,
    logprobs: choice.logprobs?.content ?? [],
    refusal: delta.refusal ?? "",
    annotations: delta.annotations ?? [],
    calls: [...(delta.tool_calls ?? []), ...old].map(({ index, id, function: called }, at) => ({
      index: index ?? place(at),
      id: id ?? "",
      name: called?.name ?? "",
      arguments: argumentsText(called?.arguments),
    })),
    finishReason: choice.finish_reason || null,
  };
}

function argumentsText(value: z.infer<typeof argumentsSchema>): string {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

function readContent(content: z.infer<typeof contentSchema>): { text: string | null; thinking: string } {
  if (content === null || content === undefined) return { text: null, thinking: "" };
  if (typeof content === "string") return { text: content, thinking: "" };
  const of = (type: string): string => content.flatMap((part) => (part.type === type ? [textOf(part)] : [])).join("");
  return { text: of("text"), thinking: of("thinking") };
}

/** `{text}`, or `{thinking: [{text}]}`, as one provider nests it. */
function textOf(part: JsonObject): string {
  const inner = part["text"] ?? part["thinking"];
  if (typeof inner === "string") return inner;
  return Array.isArray(inner) ? inner.map((each: unknown) => textOf(each as JsonObject)).join("") : "";
}
