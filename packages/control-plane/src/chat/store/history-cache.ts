import { LRUCache } from "lru-cache";
import type { SessionRecord } from "../items/chat-session.ts";
import type { HistoryTail } from "../items/history-input.ts";
import { type ContextRoom, firstFitting } from "../items/history-input.ts";
import type { ChatItemStore, HistoryItem } from "./chat-item-store.ts";
import { readTail } from "./history-tail.ts";

/** The newest live items of a session as they were at one of its states. */
export interface KnownHistory {
  readonly session: SessionState;
  readonly items: readonly HistoryItem[];
}

/**
 * Identifies a session's live items: an item that is added raises both counts, and one that is superseded or removed lowers
 * `itemCount` alone, so no two states have the same pair.
 */
type SessionState = Pick<SessionRecord, "id" | "nextPosition" | "itemCount">;

export interface HistoryCacheLimits {
  /** Of all sessions, in bytes of JSON. */
  readonly maxBytes: number;
  /** Of one session. */
  readonly maxSessionBytes: number;
}

const LIMITS: HistoryCacheLimits = { maxBytes: 16 * 1024 * 1024, maxSessionBytes: 2 * 1024 * 1024 };
/** What an item costs beside its JSON. */
const ITEM_BYTES = 256;
/** More is kept than fits now, since the next turn may be shorter. */
const MARGIN = 1.25;

/** Histories that turns have read lately. The next turn of a session reads only what was added since. */
export class HistoryCache {
  readonly #known: LRUCache<string, KnownHistory>;

  constructor({ maxBytes, maxSessionBytes }: HistoryCacheLimits = LIMITS) {
    this.#known = new LRUCache<string, KnownHistory>({
      maxSize: maxBytes,
      maxEntrySize: maxSessionBytes,
      sizeCalculation: ({ items }) => items.reduce((sum, { bytes }) => sum + bytes + ITEM_BYTES, ITEM_BYTES),
    });
  }

  /** @returns null where nothing is known, or an item of it may be gone. */
  find({ id, nextPosition, itemCount }: SessionState): KnownHistory | null {
    const known = this.#known.get(id);
    if (known === undefined) return null;
    const added = nextPosition - known.session.nextPosition;
    return added >= 0 && itemCount - known.session.itemCount === added ? known : null;
  }

  /** Only of a state that is committed. */
  keep(history: KnownHistory): void {
    this.#known.set(history.session.id, history);
  }
}

interface ReadHistory {
  readonly tail: HistoryTail;
  readonly known: KnownHistory;
}

/** What has room of a session's history; from the store only what is not known. */
export async function readHistory(
  items: Pick<ChatItemStore, "sizesBefore" | "listFrom">,
  session: SessionRecord,
  { room, known }: { readonly room: ContextRoom; readonly known: KnownHistory | null },
): Promise<ReadHistory> {
  const wide = { ...room, tokens: Math.ceil(room.tokens * MARGIN) };
  const newest =
    known === null ? null : [...known.items, ...(await items.listFrom(session.id, known.session.nextPosition))];
  const isEnough = newest !== null && reaches(newest, session, room);
  const found = isEnough ? newest : (await readTail(items, session, wide)).items;
  const tail = fitting(found, room);
  const { id, nextPosition, itemCount } = session;
  return {
    tail: { items: tail, olderItems: itemCount - tail.length },
    known: { session: { id, nextPosition, itemCount }, items: fitting(found, wide) },
  };
}

/** Whether no older item can have room. */
function reaches(items: readonly HistoryItem[], { itemCount }: SessionState, room: ContextRoom): boolean {
  if (items.length === itemCount) return true;
  const tokens = items.reduce((sum, item) => sum + item.tokens, 0);
  // The last exchange may have begun before these items.
  return tokens > room.tokens && (!room.keepsLast || items.some(({ isQuestion }) => isQuestion));
}

function fitting(items: readonly HistoryItem[], room: ContextRoom): readonly HistoryItem[] {
  return items.slice(firstFitting(items, room));
}
