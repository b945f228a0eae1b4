import type { Clock } from "@fairlead/protocol/clock";
import type { IdSource } from "@fairlead/protocol/ids";
import type { Kysely } from "kysely";
import type { ProjectAccess } from "../auth/access.ts";
import type { Database } from "../db/schema.ts";
import { ChatSessionStore } from "./chat-session-store.ts";
import { chatStores } from "./chat-stores.ts";
import { ChatTurnStore } from "./chat-turn-store.ts";
import { SessionHistoryService } from "./session-history-service.ts";
import { SessionRemovalService } from "./session-removal-service.ts";
import { SessionRemovalStore } from "./session-removal-store.ts";
import { SessionService } from "./session-service.ts";
import { TurnLog } from "./turn-log.ts";

export interface ChatServicesDeps {
  /** The store's handles (`OpenedHandle`). */
  readonly db: Kysely<Database>;
  readonly longReads: Kysely<Database>;
  readonly writes: Kysely<Database>;
  readonly access: ProjectAccess;
  readonly clock: Clock;
  readonly ids: IdSource;
}

export interface ChatServices {
  readonly turnLog: TurnLog;
  readonly chatSessions: SessionService;
  readonly chatHistory: SessionHistoryService;
  readonly chatRemoval: SessionRemovalService;
}

/** What is stored of chats. */
export function createChatServices({ db, longReads, writes, ...parts }: ChatServicesDeps): ChatServices {
  const stores = chatStores(db);
  const chatRemoval = new SessionRemovalService({ ...parts, store: new SessionRemovalStore(writes) });
  const searches = new ChatSessionStore(longReads);
  const turnLog = new TurnLog({ ...parts, stores, writes: new ChatTurnStore(writes) });
  return {
    turnLog,
    chatSessions: new SessionService({ ...parts, stores, searches, turns: turnLog, removal: chatRemoval }),
    chatHistory: new SessionHistoryService({ stores: chatStores(longReads), log: turnLog }),
    chatRemoval,
  };
}
