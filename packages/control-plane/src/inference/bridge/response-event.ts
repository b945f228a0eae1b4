import { z } from "zod";
import { logprobsSchema } from "./logprobs.ts";
import { isObject } from "./parse.ts";
import type { ItemPlace } from "./streamed-items.ts";
import type { JsonObject } from "./wire.ts";

interface ReadResponse {
  readonly model?: string | null | undefined;
  readonly service_tier?: string | null | undefined;
  readonly [field: string]: unknown;
}

/** Reading events of a responses stream. Upstreams leave fields out; whatever can be understood is. */
export interface ReadEvent {
  readonly type: string;
  readonly place: ItemPlace;
  /** The index of the content part, or of the part of a summary. */
  readonly part: number;
  readonly delta: string;
  readonly logprobs: z.infer<typeof logprobsSchema>;
  readonly annotation: unknown;
  readonly item: unknown;
  readonly response: ReadResponse | null;
  readonly source: JsonObject;
}

const index = z.number().int().nonnegative().nullish().catch(null);
const eventSchema = z.object({
  type: z.string(),
  output_index: index,
  content_index: index,
  summary_index: index,
  item_id: z.string().catch(""),
  delta: z.string().catch(""),
  logprobs: logprobsSchema.catch([]),
  annotation: z.unknown().optional(),
  item: z.unknown().optional(),
  response: z
    .looseObject({ model: z.string().nullish().catch(null), service_tier: z.string().nullish().catch(null) })
    .nullish()
    .catch(null),
});

/** @returns null for what is no event. An error without a type is one all the same. */
export function readEvent(value: unknown): ReadEvent | null {
  if (!isObject(value)) return null;
  const typed = value["type"] === undefined && value["error"] ? { ...value, type: "error" } : value;
  const { data } = eventSchema.safeParse(typed);
  if (!data) return null;
  return {
    type: data.type,
    place: { index: data.output_index ?? null, id: data.item_id || itemIdOf(data.item) },
    part: data.content_index ?? data.summary_index ?? 0,
    delta: data.delta,
    logprobs: data.logprobs,
    annotation: data.annotation,
    item: data.item,
    response: data.response ?? null,
    source: value,
  };
}

/** What an item is known by within its stream: a call without an id of its own is known by its call id (lemonade-sdk/lemonade#3607). */
export function itemIdOf(item: unknown): string {
  if (!isObject(item)) return "";
  const { id, call_id: callId } = item;
  if (typeof id === "string" && id !== "") return id;
  return typeof callId === "string" && !isOutput(item) ? callId : "";
}

/** Outputs of hosted tools carry the id of the call that they answer. */
function isOutput({ type }: JsonObject): boolean {
  return typeof type === "string" && type.endsWith("_output");
}
