import type { SessionRecord } from "../items/chat-session.ts";
import { type ContextRoom, firstFitting } from "../items/history-input.ts";
import type { ChatItemStore, HistoryItem, ItemSize } from "./chat-item-store.ts";

interface HistoryRead {
  readonly items: readonly HistoryItem[];
  /** Live items before them. */
  readonly olderItems: number;
}

/** Sizes that are read at a time. */
const BLOCK = 256;

/**
 * The newest of a session's items that have room, read from the newest backwards: what does not fit is never read, however long the
 * session is.
 */
export async function readTail(
  items: Pick<ChatItemStore, "sizesBefore" | "listFrom">,
  session: SessionRecord,
  room: ContextRoom,
): Promise<HistoryRead> {
  const sized = (await readSizes(items, session, room)).toReversed().map(({ position, tokens, role }) => ({
    position,
    tokens,
    isQuestion: role === "user",
  }));
  const kept = sized.slice(firstFitting(sized, room));
  const [first] = kept;
  return {
    items: first === undefined ? [] : await items.listFrom(session.id, first.position),
    olderItems: session.itemCount - kept.length,
  };
}

async function readSizes(
  items: Pick<ChatItemStore, "sizesBefore">,
  { id, nextPosition }: SessionRecord,
  room: ContextRoom,
): Promise<ItemSize[]> {
  const sizes: ItemSize[] = [];
  let before = nextPosition;
  let tokens = 0;
  let questions = 0;
  for (;;) {
    const block = await items.sizesBefore(id, before, BLOCK);
    sizes.push(...block);
    for (const { tokens: own, role } of block) {
      tokens += own;
      if (role === "user") questions += 1;
    }
    const isFull = tokens > room.tokens && (questions > 0 || !room.keepsLast);
    if (block.length < BLOCK || isFull) return sizes;
    before = block.at(-1)?.position ?? 0;
  }
}
