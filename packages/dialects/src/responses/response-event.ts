import { z } from "zod";
import { logprobsSchema } from "../chat/logprobs.ts";
import type { JsonObject } from "../convert/wire.ts";
import { isObject } from "../json/parse.ts";
import type { ItemPlace } from "./streamed-items.ts";

interface ReadResponse {
  readonly service_tier?: string | null | undefined;
  readonly [field: string]: unknown;
}

/** Reads events of a responses stream. Upstreams omit fields, so anything that can be understood is accepted. */
export interface ReadEvent {
  readonly type: string;
  readonly place: ItemPlace;
  /** Index of the content part or summary part. */
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
    .looseObject({ service_tier: z.string().nullish().catch(null) })
    .nullish()
    .catch(null),
});

/** @returns null if it is not an event. An error without a type counts as an event. */
export function readEvent(value: unknown): ReadEvent | null {
  if (!isObject(value)) return null;
  const typed = value["type"] === undefined && value["error"] ? { ...value, type: "error" } : value;
  // Checked before the schema, whose errors cost more than a whole event: a stream may contain hundreds of thousands of these.
  if (typeof typed["type"] !== "string") return null;
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

/** Identifies an item within its stream. A call without an ID is identified by its call ID (lemonade-sdk/lemonade#3607). */
export function itemIdOf(item: unknown): string {
  if (!isObject(item)) return "";
  const { id, call_id: callId } = item;
  if (typeof id === "string" && id !== "") return id;
  return typeof callId === "string" && !isOutput(item) ? callId : "";
}

/** Outputs of hosted tools carry the ID of their call. */
function isOutput({ type }: JsonObject): boolean {
  return typeof type === "string" && type.endsWith("_output");
}
