import type { Kysely } from "kysely";
import { type Stores, storesOn } from "../../installation/db/stores-on.ts";
import type { Database } from "../../installation/db/tables/schema.ts";
import { ChatItemStore } from "./chat-item-store.ts";
import { ChatSessionStore } from "./chat-session-store.ts";
import { ChatTurnStore } from "./chat-turn-store.ts";

const openStores = (db: Kysely<Database>) => ({
  sessions: new ChatSessionStore(db),
  turns: new ChatTurnStore(db),
  items: new ChatItemStore(db),
});

export type ChatStores = Stores<ReturnType<typeof openStores>>;

export const chatStores = (db: Kysely<Database>): ChatStores => storesOn(db, openStores);
