import type { Clock } from "@fairlead/protocol/clock";
import type { IdSource } from "@fairlead/protocol/ids";
import type { ProjectAccess } from "../auth/access.ts";
import type { ChatScope } from "./chat-scope.ts";
import { newSession, type SessionCursor, type SessionPage, type SessionRecord } from "./chat-session.ts";
import type { ChatSessionStore } from "./chat-session-store.ts";
import type { ChatStores } from "./chat-stores.ts";
import type { SessionRemovalService } from "./session-removal-service.ts";
import { sessionBusy, sessionNotFound } from "./turn-begin.ts";
import type { TurnLog } from "./turn-log.ts";

export interface SessionServiceDeps {
  readonly stores: ChatStores;
  /** On the handle for long work: a search looks at texts. */
  readonly searches: Pick<ChatSessionStore, "matching">;
  readonly turns: Pick<TurnLog, "isRunning">;
  readonly removal: Pick<SessionRemovalService, "removeSession">;
  readonly access: Pick<ProjectAccess, "requireWithin">;
  readonly clock: Clock;
  readonly ids: IdSource;
}

/** What `/new` opens. */
export interface NewSession {
  readonly model: string | null;
  /** The session that the caller was in; null: in none. */
  readonly openedFrom: string | null;
}

export interface SessionChange {
  readonly title?: string | undefined;
  /** Replaced whole. */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
}

export interface SessionList {
  readonly sessions: readonly SessionRecord[];
  /** Where it goes on; null at the end. A page of a search may hold fewer than were asked for, or none. */
  readonly next: SessionCursor | null;
}

/** How long a repeat of `/new` finds the session that it has opened (design §7). */
const REPEAT_MS = 10_000;
/** Items that one statement of a search looks at, but for a longer session; and all that one page of a search looks at. */
const ITEMS_PER_SEARCH = 10_000;
const MOST_ITEMS_SEARCHED = 100_000;
const CANDIDATES = 200;

/** A person's chat sessions. Whoever asks has seen to it that they may. */
export class SessionService {
  readonly #deps: SessionServiceDeps;

  constructor(deps: SessionServiceDeps) {
    this.#deps = deps;
  }

  /** For `/new`; a first turn opens its session by itself. A repeat returns the session that is there, if it is still empty. */
  async open(scope: ChatScope, { model, openedFrom }: NewSession): Promise<SessionRecord> {
    const { stores, access, clock, ids } = this.#deps;
    const createdAt = clock.now();
    const from = openedFrom ?? "";
    return await stores.transaction(async ({ sessions }, transaction) => {
      // Holds the project, so that of two at once the second finds the first one's session.
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

  /** The newest activity first. @param query in titles and texts; "": all. */
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

  /** @throws DomainError session_not_found; session_busy while a turn runs, whose answer would have no place. */
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

  /** In portions that are bounded by the items that they look at. */
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

/** The first ones, as far as one statement may look at them. */
function portionOf(sessions: readonly SessionRecord[]): { sessions: readonly SessionRecord[]; items: number } {
  let items = 0;
  let count = 0;
  for (const { itemCount } of sessions) {
    if (count > 0 && items + itemCount > ITEMS_PER_SEARCH) break;
    count += 1;
    // Its title is looked at too.
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
