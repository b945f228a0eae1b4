import type { Kysely } from "kysely";
import type { Database } from "../db/schema.ts";
import { ChatItemStore } from "./chat-item-store.ts";
import { ChatSessionStore } from "./chat-session-store.ts";
import { ChatTurnStore } from "./chat-turn-store.ts";

/** The stores of this room, on one handle or inside one transaction. */
export interface ChatStores {
  readonly sessions: ChatSessionStore;
  readonly turns: ChatTurnStore;
  readonly items: ChatItemStore;
  transaction<T>(work: (stores: ChatStores, transaction: Kysely<Database>) => Promise<T>): Promise<T>;
}

export function chatStores(db: Kysely<Database>): ChatStores {
  return {
    sessions: new ChatSessionStore(db),
    turns: new ChatTurnStore(db),
    items: new ChatItemStore(db),
    transaction: (work) => db.transaction().execute((transaction) => work(chatStores(transaction), transaction)),
  };
}
