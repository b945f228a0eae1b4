import type { JsonObject } from "@fairlead/dialects/convert/wire";
import { isObject } from "@fairlead/dialects/json/parse";
import { itemIdOf, type ReadEvent, readEvent } from "@fairlead/dialects/responses/response-event";
import type { ItemPlace } from "@fairlead/dialects/responses/streamed-items";

/** A response's items, assembled from its events so far. Pure. */

type TextField = "text" | "refusal";

/** One growing part of an item's `content` or `summary`. */
export interface GrowingPart {
  readonly head: JsonObject;
  readonly field: TextField;
  text: string;
  /** Whether its final text was received. */
  told: boolean;
  closed: boolean;
}

export interface GrowingItem {
  readonly id: string;
  readonly index: number;
  /** As added; the final version once it is done. */
  item: JsonObject;
  done: boolean;
  readonly content: (GrowingPart | undefined)[];
  readonly summary: (GrowingPart | undefined)[];
  /** Arguments or input of a call. */
  args: string;
  argsTold: boolean;
}

/** Far above real responses; prevents an upstream from filling memory with empty items. */
const MOST_ITEMS = 1024;
const MOST_PARTS = 1024;
const BYTES_PER_ITEM = 1024;

/** The items of one response, from its stream's events. Skips what it does not understand. */
export class AnswerItems {
  readonly #items: GrowingItem[] = [];
  readonly #byId = new Map<string, GrowingItem>();
  /** Approximate memory use in bytes. */
  size = 0;

  get isEmpty(): boolean {
    return this.#items.length === 0;
  }

  /** Items that the upstream has not finished, in order. */
  get open(): readonly GrowingItem[] {
    return this.#items.filter(({ done }) => !done);
  }

  /** @param value an event's parsed data. */
  push(value: unknown): void {
    const event = readEvent(value);
    if (event === null) return;
    if (event.type === "response.output_item.added") this.#add(event, false);
    else if (event.type === "response.output_item.done") this.#add(event, true);
    else this.#grow(event);
  }

  /** In stored form; unfinished items are `incomplete`. */
  view(): JsonObject[] {
    return this.#items.flatMap((item) => (item.done ? [item.item] : soFar(item)));
  }

  /** All items that the stream has started, as a stream ending here reports them. */
  told(): JsonObject[] {
    return this.#items.map((item) => (item.done ? item.item : viewItem(item)));
  }

  #add({ item, place }: ReadEvent, done: boolean): void {
    if (!isObject(item)) return;
    const id = itemIdOf(item);
    const known = this.#byId.get(id) ?? (done ? this.#begun(item, place) : undefined);
    if (known !== undefined) {
      known.item = item;
      known.done ||= done;
      return;
    }
    if (this.#items.length >= MOST_ITEMS) return;
    this.size += BYTES_PER_ITEM;
    const args = textOf(item["arguments"]) || textOf(item["input"]);
    const added = {
      id,
      index: place.index ?? this.#items.length,
      item,
      done,
      content: [],
      summary: [],
      args,
      argsTold: false,
    };
    this.#items.push(added);
    if (id !== "") this.#byId.set(id, added);
  }

  #grow(event: ReadEvent): void {
    const item = this.#find(event.place.id, event.place.index);
    if (item === undefined || item.done) return;
    const { part: at, delta, source, type } = event;
    this.size += 2 * delta.length;
    if (at >= MOST_PARTS) return;
    switch (type) {
      case "response.content_part.added":
        item.content[at] = partOf(source["part"]);
        return;
      case "response.reasoning_summary_part.added":
        item.summary[at] = partOf(source["part"]);
        return;
      case "response.output_text.delta":
        return append(item.content, at, { delta, type: "output_text" });
      case "response.refusal.delta":
        return append(item.content, at, { delta, type: "refusal" });
      case "response.reasoning_text.delta":
      case "response.reasoning.delta":
        return append(item.content, at, { delta, type: "reasoning_text" });
      case "response.reasoning_summary_text.delta":
        return append(item.summary, at, { delta, type: "summary_text" });
      case "response.output_text.done":
      case "response.refusal.done":
      case "response.reasoning_text.done":
        return tell(item.content[at]);
      case "response.reasoning_summary_text.done":
        return tell(item.summary[at]);
      case "response.content_part.done":
        return close(item.content[at]);
      case "response.reasoning_summary_part.done":
        return close(item.summary[at]);
      case "response.function_call_arguments.delta":
      case "response.custom_tool_call_input.delta":
        item.args += delta;
        return;
      case "response.function_call_arguments.done":
      case "response.custom_tool_call_input.done":
        item.argsTold = true;
    }
  }

  /** The item that ends under another ID than it started with, or without one: an open one of its type at its index. */
  #begun({ type }: JsonObject, { id, index }: ItemPlace): GrowingItem | undefined {
    const known = this.#find(id, index);
    return known?.done === false && known.item["type"] === type ? known : undefined;
  }

  /** Some upstreams omit the index, and some change an item's ID between events. */
  #find(id: string, index: number | null): GrowingItem | undefined {
    const known = this.#byId.get(id) ?? this.#items.findLast((item) => index !== null && item.index === index);
    return known ?? (id === "" && index === null ? this.#items.at(-1) : undefined);
  }
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

function partOf(value: unknown): GrowingPart {
  const head = isObject(value) ? value : { type: "output_text", text: "", annotations: [], logprobs: [] };
  const field: TextField = head["type"] === "refusal" ? "refusal" : "text";
  return { head, field, text: textOf(head[field]), told: false, closed: false };
}

const EMPTY_PARTS: Readonly<Record<string, JsonObject>> = {
  output_text: { type: "output_text", text: "", annotations: [], logprobs: [] },
  refusal: { type: "refusal", refusal: "" },
  reasoning_text: { type: "reasoning_text", text: "" },
  summary_text: { type: "summary_text", text: "" },
};

function append(
  parts: (GrowingPart | undefined)[],
  at: number,
  { delta, type }: { delta: string; type: string },
): void {
  const part = (parts[at] ??= partOf(EMPTY_PARTS[type]));
  part.text += delta;
}

function tell(part: GrowingPart | undefined): void {
  if (part !== undefined) part.told = true;
}

function close(part: GrowingPart | undefined): void {
  if (part !== undefined) part.closed = true;
}

/** A part's current content. */
export function viewPart({ head, field, text }: GrowingPart): JsonObject {
  return { ...head, [field]: text };
}

/** An unfinished item's current content. */
export function viewItem({ item, content, summary, args }: GrowingItem): JsonObject {
  const parts = (list: (GrowingPart | undefined)[]): JsonObject[] =>
    list.flatMap((part) => (part === undefined ? [] : [viewPart(part)]));
  const base = { ...item, status: "incomplete" };
  switch (item["type"]) {
    case "message":
      return { ...base, content: parts(content) };
    case "reasoning":
      return { ...base, summary: parts(summary), ...(content.length > 0 ? { content: parts(content) } : {}) };
    case "function_call":
      return { ...base, arguments: args };
    case "custom_tool_call":
      return { ...base, input: args };
    default:
      return base;
  }
}

/** Empty messages are not kept. */
function soFar(item: GrowingItem): JsonObject[] {
  const isSilent = item.item["type"] === "message" && item.content.every((part) => !part?.text);
  return isSilent ? [] : [viewItem(item)];
}
