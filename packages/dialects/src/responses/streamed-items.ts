import { DomainError } from "@fairlead/protocol/errors";
import type { ResponseCallPiece } from "./response-output.ts";

/** Tracks how much of each item was sent, by length only, so that long responses cost no memory. */

export interface ItemPlace {
  /** Null if the upstream sends no index (ggml-org/llama.cpp#20607). */
  readonly index: number | null;
  readonly id: string;
}

interface StreamedCall {
  readonly index: number;
  readonly type: ResponseCallPiece["type"];
  readonly id: string;
  readonly name: string;
  /** Whether the name was sent. */
  isTold: boolean;
}

const MOST_ITEMS = 1024;

export class StreamedItems {
  readonly #byIndex = new Map<number, StreamedItem>();
  readonly #byId = new Map<string, StreamedItem>();
  #latest: StreamedItem | null = null;
  /** Started by an event without index and id; the next item that has one is the same. */
  #nameless: StreamedItem | null = null;
  #count = 0;
  callCount = 0;
  hasThought = false;

  /** A new id is a new item, even with a repeated index. */
  add(place: ItemPlace): StreamedItem {
    const { index, id } = place;
    const known = id === "" ? this.#at(index) : this.#byId.get(id);
    return known ?? this.#keep(place, new StreamedItem(this));
  }

  /** Some upstreams change an item's id between events; then the index counts. Without both, it is the latest. */
  get(place: ItemPlace): StreamedItem {
    const { index, id } = place;
    const known = (id === "" ? undefined : this.#byId.get(id)) ?? this.#at(index);
    if (known) return known;
    if (index !== null || id !== "") return this.#adopt(place) ?? this.#keep(place, new StreamedItem(this));
    if (this.#latest !== null) return this.#latest;
    this.#nameless = this.#keep(place, new StreamedItem(this));
    return this.#nameless;
  }

  #adopt({ index, id }: ItemPlace): StreamedItem | null {
    const item = this.#nameless;
    this.#nameless = null;
    if (item !== null && index !== null) this.#byIndex.set(index, item);
    if (item !== null && id !== "") this.#byId.set(id, item);
    return item;
  }

  #at(index: number | null): StreamedItem | undefined {
    return index === null ? undefined : this.#byIndex.get(index);
  }

  /** @throws DomainError `upstream_failed` for an excessive number of items. */
  #keep({ index, id }: ItemPlace, item: StreamedItem): StreamedItem {
    if (index !== null) this.#byIndex.set(index, item);
    if (id !== "") this.#byId.set(id, item);
    this.#latest = item;
    this.#count += 1;
    if (this.#count <= MOST_ITEMS) return item;
    throw new DomainError("upstream_failed", "The upstream's response has too many items to convert.");
  }
}

export class StreamedItem {
  readonly #items: StreamedItems;
  readonly #given = new Map<string, number>();
  #thinking: string | null = null;
  call: StreamedCall | null = null;

  constructor(items: StreamedItems) {
    this.#items = items;
  }

  given(part: string): number {
    return this.#given.get(part) ?? 0;
  }

  give(part: string, length: number): void {
    this.#given.set(part, this.given(part) + length);
  }

  /** An upstream may send the same reasoning as summary and as text; the first one is used. */
  thinksIn(part: string): boolean {
    const [kind = ""] = part.split(" ", 1);
    this.#thinking ??= kind;
    return this.#thinking === kind;
  }

  name({ type, id, name }: ResponseCallPiece): void {
    if (this.call || name === "") return;
    this.call = { index: this.#items.callCount, type, id, name, isTold: false };
    this.#items.callCount += 1;
  }
}
