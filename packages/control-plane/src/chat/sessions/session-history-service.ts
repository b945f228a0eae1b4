import { setImmediate as othersFirst } from "node:timers/promises";
import {
  type HistoryMessage,
  type ItemPage,
  type ItemRange,
  renderHistory,
  type StoredItem,
} from "../items/chat-item.ts";
import type { ChatScope } from "../items/chat-scope.ts";
import type { SessionRecord } from "../items/chat-session.ts";
import { answerItems } from "../store/answer-stored.ts";
import type { ChatStores } from "../store/chat-stores.ts";
import type { PartialAnswer } from "../store/chat-turn-store.ts";
import { sessionNotFound } from "../store/turn-begin.ts";
import type { TurnLog } from "../store/turn-log.ts";

export interface SessionHistoryDeps {
  /** On the handle for long reads, because sessions may be long. */
  readonly stores: Pick<ChatStores, "sessions" | "turns" | "items">;
  readonly log: Pick<TurnLog, "isRunning">;
}

/** Number of items read at a time. */
const PAGE = 100;

export interface WholeSession {
  readonly session: SessionRecord;
  /** In chunks, so that a long session blocks no one. */
  readonly items: AsyncIterable<readonly StoredItem[]>;
}

/** Reads the history of sessions. While a turn runs, the stored part of its response comes last, as `in_progress`. */
export class SessionHistoryService {
  readonly #stores: SessionHistoryDeps["stores"];
  readonly #log: SessionHistoryDeps["log"];

  constructor({ stores, log }: SessionHistoryDeps) {
    this.#stores = stores;
    this.#log = log;
  }

  /** One page, without superseded items. @throws DomainError session_not_found */
  async messages(scope: ChatScope, id: string, page: Omit<ItemRange, "withSuperseded">): Promise<ItemPage> {
    const { session, running } = await this.#find(scope, id);
    return await this.#page(session, running, { ...page, withSuperseded: false });
  }

  /** All messages, in order (docs/interface.md §4.1). @throws DomainError session_not_found */
  async history(scope: ChatScope, id: string): Promise<AsyncIterable<readonly HistoryMessage[]>> {
    const { items } = await this.whole(scope, id, { withSuperseded: false });
    return rendered(items);
  }

  /** All items, in order. @throws DomainError session_not_found */
  async whole(scope: ChatScope, id: string, options: Pick<ItemRange, "withSuperseded">): Promise<WholeSession> {
    const { session, running } = await this.#find(scope, id);
    return { session, items: this.#pages(session, running, options.withSuperseded) };
  }

  /** Reads the running response before the items: if it ends in between, it is among the items. */
  async #find(scope: ChatScope, id: string): Promise<{ session: SessionRecord; running: readonly StoredItem[] }> {
    const session = await this.#stores.sessions.find(scope, id);
    if (session === null) throw sessionNotFound();
    const partial = await this.#stores.turns.findPartial(id);
    return { session, running: partial === null ? [] : this.#itemsSoFar(session, partial) };
  }

  /** With the positions they will have once stored. Returns none if the turn was lost. */
  #itemsSoFar(session: SessionRecord, { turnId, items, beganAt }: PartialAnswer): StoredItem[] {
    const end = { status: "incomplete", items, usage: null } as const;
    const turn = { turnId, end, position: session.nextPosition, at: beganAt };
    const stored = answerItems(turn, (index) => `${turnId}_${index}`);
    return this.#log.isRunning(turnId) ? stored.map(inProgress) : stored;
  }

  async *#pages(
    session: SessionRecord,
    running: readonly StoredItem[],
    withSuperseded: boolean,
  ): AsyncGenerator<readonly StoredItem[]> {
    let after: number | null = null;
    for (;;) {
      const range = { after, before: null, order: "asc", limit: PAGE, withSuperseded } as const;
      const { items, more }: ItemPage = await this.#page(session, running, range);
      yield items;
      const last = items.at(-1);
      if (!more || last === undefined) return;
      after = last.position;
      // Yields between pages, which arrive from another thread and would otherwise be processed without a break.
      await othersFirst();
    }
  }

  async #page(session: SessionRecord, running: readonly StoredItem[], range: ItemRange): Promise<ItemPage> {
    const page = await this.#stores.items.list(session.id, range);
    const { after, before, order, limit } = range;
    const isAscending = order === "asc";
    if (isAscending && page.more) return page;
    const newest = isAscending ? page.items.at(-1) : page.items[0];
    const floor = Math.max(after ?? 0, newest?.position ?? 0);
    const rest = running.filter(({ position }) => position > floor && (before === null || position < before));
    const items = isAscending ? [...page.items, ...rest] : [...rest.toReversed(), ...page.items];
    return { items: items.slice(0, limit), more: page.more || items.length > limit };
  }
}

async function* rendered(pages: AsyncIterable<readonly StoredItem[]>): AsyncGenerator<readonly HistoryMessage[]> {
  for await (const page of pages) yield renderHistory(page);
}

function inProgress(stored: StoredItem): StoredItem {
  if (stored.status !== "incomplete") return stored;
  return { ...stored, status: "in_progress", item: { ...stored.item, status: "in_progress" } };
}
