import type { Clock } from "@fairlead/protocol/values/clock";
import type { IdSource } from "@fairlead/protocol/values/ids";
import type { ProjectAccess } from "../../access/auth/access.ts";
import type { ChatScope } from "../items/chat-scope.ts";
import { newSession, type SessionCursor, type SessionPage, type SessionRecord } from "../items/chat-session.ts";
import type { ChatSessionStore } from "../store/chat-session-store.ts";
import type { ChatStores } from "../store/chat-stores.ts";
import { sessionBusy, sessionNotFound } from "../store/turn-begin.ts";
import type { TurnLog } from "../store/turn-log.ts";
import { removeTurn } from "../store/turn-removal.ts";
import type { SessionRemovalService } from "./session-removal-service.ts";

export interface ChatSessionServiceDeps {
  readonly stores: ChatStores;
  /** On the handle for long reads, because a search reads texts. */
  readonly searches: Pick<ChatSessionStore, "matching">;
  readonly turns: Pick<TurnLog, "isRunning">;
  readonly removal: Pick<SessionRemovalService, "removeSession">;
  readonly access: Pick<ProjectAccess, "requireWithin">;
  readonly clock: Clock;
  readonly ids: IdSource;
}

/** A session created by `/new`. */
export interface NewSession {
  readonly model: string | null;
  /** The caller's previous session; null: none. */
  readonly openedFrom: string | null;
}

export interface SessionChange {
  readonly title?: string | undefined;
  /** Replaced as a whole. */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
}

export interface SessionList {
  readonly sessions: readonly SessionRecord[];
  /** Cursor of the next page; null on the last. A search page may contain fewer sessions than requested, or none. */
  readonly next: SessionCursor | null;
}

/** How long a repeated `/new` returns the session that it created (decisions/0021). */
const REPEAT_MS = 10_000;
/** Maximum number of items that a search statement reads, except for a longer session; also the maximum per page. */
const ITEMS_PER_SEARCH = 10_000;
const MOST_ITEMS_SEARCHED = 100_000;
const CANDIDATES = 200;

/** A user's chat sessions. Callers check permissions. */
export class ChatSessionService {
  readonly #deps: ChatSessionServiceDeps;

  constructor(deps: ChatSessionServiceDeps) {
    this.#deps = deps;
  }

  /** Used by `/new`; a first turn creates its session itself. A repeated call returns the existing session if it is still empty. */
  async open(scope: ChatScope, { model, openedFrom }: NewSession): Promise<SessionRecord> {
    const { stores, access, clock, ids } = this.#deps;
    const createdAt = clock.now();
    const from = openedFrom ?? "";
    return await stores.transaction(async ({ sessions }, transaction) => {
      // Locks the project, so that the second of two concurrent calls finds the first one's session.
      await access.requireWithin(transaction, { caller: scope, projectId: scope.projectId, operation: "chat.use" });
      const opened = await sessions.findEmpty(scope, from, createdAt - REPEAT_MS);
      if (opened !== null) return opened;
      const session = newSession(scope, { id: ids.next("chatSession"), model, openedFrom: from, createdAt });
      await sessions.insert(session);
      return session;
    });
  }

  async find(scope: ChatScope, id: string): Promise<SessionRecord | null> {
    return await this.#deps.stores.sessions.find(scope, id);
  }

  /** @throws DomainError session_not_found */
  async require(scope: ChatScope, id: string): Promise<SessionRecord> {
    const session = await this.find(scope, id);
    if (session === null) throw sessionNotFound();
    return session;
  }

  isRunning({ lastTurnId }: SessionRecord): boolean {
    return lastTurnId !== null && this.#deps.turns.isRunning(lastTurnId);
  }

  /** Most recent activity first. @param query in titles and texts; "": all. */
  async list(scope: ChatScope, { query, ...page }: SessionPage & { readonly query: string }): Promise<SessionList> {
    if (query !== "") return await this.#search(scope, query, page);
    const found = await this.#deps.stores.sessions.list(scope, { ...page, limit: page.limit + 1 });
    return upTo(page.limit, found, null);
  }

  /** @throws DomainError session_not_found */
  async update(scope: ChatScope, id: string, { title, metadata }: SessionChange): Promise<SessionRecord> {
    return await this.#deps.stores.transaction(async ({ sessions }) => {
      const session = await sessions.findForUpdate(scope, id);
      if (session === null) throw sessionNotFound();
      const changed = {
        ...session,
        metadata: metadata ?? session.metadata,
        ...(title === undefined ? {} : { title, titledByPerson: true }),
      };
      await sessions.setSettings(changed);
      return changed;
    });
  }

  /** @throws DomainError session_not_found; session_busy while a turn runs, whose response would have no session. */
  async delete(scope: ChatScope, id: string): Promise<void> {
    const { stores, removal, clock } = this.#deps;
    await stores.transaction(async ({ sessions, turns }) => {
      const session = await sessions.findForUpdate(scope, id);
      if (session === null) throw sessionNotFound();
      if ((await turns.findPartial(id)) !== null) throw sessionBusy();
      await sessions.markDeleted(session, clock.now());
    });
    await removal.removeSession(id);
  }

  /** Permanent. @throws DomainError session_not_found, session_busy; invalid_request for any but the newest turn. */
  async deleteTurn(scope: ChatScope, sessionId: string, turnId: string): Promise<void> {
    await this.#deps.stores.transaction((within) => removeTurn(within, { scope, sessionId, turnId }));
  }

  /** In chunks, limited by the number of items read. */
  async #search(scope: ChatScope, query: string, { after, limit }: SessionPage): Promise<SessionList> {
    const { stores, searches } = this.#deps;
    const found: SessionRecord[] = [];
    let cursor = after;
    for (let searched = 0; searched < MOST_ITEMS_SEARCHED; ) {
      const candidates = await stores.sessions.list(scope, { after: cursor, limit: CANDIDATES });
      const portion = portionOf(candidates);
      const last = portion.sessions.at(-1);
      if (last === undefined) return { sessions: found, next: null };
      const ids = portion.sessions.map(({ id }) => id);
      const matching = await searches.matching(scope, ids, query);
      found.push(...portion.sessions.filter(({ id }) => matching.has(id)));
      if (found.length > limit) return upTo(limit, found, null);
      cursor = cursorOf(last);
      searched += portion.items;
    }
    return { sessions: found, next: cursor };
  }
}

/** As many of the first sessions as one statement may read. */
function portionOf(sessions: readonly SessionRecord[]): { sessions: readonly SessionRecord[]; items: number } {
  let items = 0;
  let count = 0;
  for (const { itemCount } of sessions) {
    if (count > 0 && items + itemCount > ITEMS_PER_SEARCH) break;
    count += 1;
    // The title counts as an item.
    items += itemCount + 1;
  }
  return { sessions: sessions.slice(0, count), items };
}

function upTo(limit: number, found: readonly SessionRecord[], next: SessionCursor | null): SessionList {
  const sessions = found.slice(0, limit);
  const last = sessions.at(-1);
  return { sessions, next: found.length > limit && last !== undefined ? cursorOf(last) : next };
}

const cursorOf = ({ updatedAt, id }: SessionRecord): SessionCursor => ({ updatedAt, id });
