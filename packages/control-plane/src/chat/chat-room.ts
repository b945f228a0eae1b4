import type { ModelCatalog } from "@fairlead/inference/calls/model-catalog";
import type { InferenceHost } from "@fairlead/inference/host/inference-host";
import type { ProjectOwners } from "@fairlead/inference/ports/ports";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { IdSource } from "@fairlead/protocol/values/ids";
import type { Kysely } from "kysely";
import type { ProjectAccess } from "../access/auth/access.ts";
import type { ServerMembership } from "../installation/cluster/membership.ts";
import type { Database } from "../installation/db/tables/schema.ts";
import { keptFor, type Retention } from "../installation/process/retention.ts";
import { asRoom, type Ground } from "../room.ts";
import { addChat } from "../telemetry/metrics/chat-metrics.ts";
import { registerChatRoutes } from "./chat-routes.ts";
import { SessionHistoryService } from "./sessions/session-history-service.ts";
import { SessionLocks } from "./sessions/session-locks.ts";
import { SessionRemovalService } from "./sessions/session-removal-service.ts";
import { SessionRemovalStore } from "./sessions/session-removal-store.ts";
import { ChatSessionService } from "./sessions/session-service.ts";
import { ChatSessionStore } from "./store/chat-session-store.ts";
import { chatStores } from "./store/chat-stores.ts";
import { ChatTurnStore } from "./store/chat-turn-store.ts";
import { TurnLog } from "./store/turn-log.ts";
import { TurnCounters } from "./turns/turn-counters.ts";
import { TurnService } from "./turns/turn-service.ts";

/** A crash loses at most this much of a running response. */
const FLUSH_MS = 1000;

interface ChatOptions extends Ground {
  readonly owners: ProjectOwners;
  readonly models: ModelCatalog;
  /** A turn is an inference call. */
  readonly inference: InferenceHost;
}

export type Chat = ReturnType<typeof openChat>;

/** Chat sessions and turns. */
export function openChat({ config, log, clock, ids, installation, projects, ...options }: ChatOptions) {
  const { owners, models, inference } = options;
  const { access } = projects;
  const { admission, pace, pipeline } = inference;
  const stored = createChatServices({ ...installation, clock, ids, access });
  const { turnLog, chatSessions, chatHistory, chatRemoval } = stored;
  const turnCounters = new TurnCounters();
  const chatTurns = new TurnService({
    pipeline,
    turns: turnLog,
    sessions: chatSessions,
    models,
    locks: new SessionLocks(),
    counters: turnCounters,
    onLeave: config.chat.onLeave,
    flushMs: FLUSH_MS,
    clock,
    log,
  });
  const { maxBodyBytes } = config.inference;
  return asRoom({
    chatRemoval,
    /** Closes the turns that were running at the last stop. */
    prepare: async () => {
      const turns = await turnLog.closeLost();
      if (turns > 0) log.warn({ turns }, "closed chat turns that were interrupted when the server last stopped");
    },
    routes: (app) =>
      registerChatRoutes(app, {
        sessions: { access, chatSessions, chatHistory },
        turns: { chatTurns, access, admission, pace, owners, maxBodyBytes, clock },
        allowedOrigins: config.chat.allowedOrigins,
      }),
    retentions: chatRetentions(chatRemoval, config.retention.chatDays, clock),
    metrics: (registry) => addChat(registry, { turnCounters }),
    close: () => chatTurns.close(),
  });
}

export interface StoredChatOptions {
  /** The store's handles (`OpenedHandle`). */
  readonly db: Kysely<Database>;
  readonly longReads: Kysely<Database>;
  readonly writes: Kysely<Database>;
  readonly access: ProjectAccess;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly membership: ServerMembership;
}

export type ChatServices = ReturnType<typeof createChatServices>;

/** The stored data of chats. */
export function createChatServices({ db, longReads, writes, ...parts }: StoredChatOptions) {
  const stores = chatStores(db);
  const chatRemoval = new SessionRemovalService({ ...parts, store: new SessionRemovalStore(writes) });
  const searches = new ChatSessionStore(longReads);
  const turnLog = new TurnLog({ ...parts, stores, writes: new ChatTurnStore(writes) });
  return {
    turnLog,
    chatSessions: new ChatSessionService({ ...parts, stores, searches, turns: turnLog, removal: chatRemoval }),
    chatHistory: new SessionHistoryService({ stores: chatStores(longReads), log: turnLog }),
    chatRemoval,
  };
}

/** @param days undefined: sessions are kept until a user deletes them. */
export function chatRetentions(
  removal: SessionRemovalService,
  days: number | undefined,
  clock: Clock,
): readonly [Retention, Retention] {
  const everyMs = 600_000;
  const quiet = { what: "chat sessions", everyMs, clock };
  return [
    days === undefined
      ? // Interrupted deletions are completed in any case.
        keptFor({ ...quiet, remove: (_before, limit) => removal.removeMarked(limit) })
      : keptFor({ ...quiet, days, remove: (before, limit) => removal.removeQuiet(before, limit) }),
    { what: "stored responses of chat turns", everyMs, removeSome: (limit) => removal.forgetAnswers(limit) },
  ];
}
