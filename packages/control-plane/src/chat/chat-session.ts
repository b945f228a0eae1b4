import type { ChatSession } from "@fairlead/protocol/chat";
import type { ChatScope } from "./chat-scope.ts";
import { titleOf } from "./chat-title.ts";

/** A chat session as it is stored (design §4). Pure. Times are Unix milliseconds. */
export interface SessionRecord {
  readonly id: string;
  readonly projectId: string;
  readonly userId: string;
  readonly title: string;
  readonly titledByPerson: boolean;
  /** Of its last turn. */
  readonly model: string | null;
  readonly metadata: Readonly<Record<string, string>>;
  readonly messageCount: number;
  readonly itemCount: number;
  readonly nextPosition: number;
  readonly lastTurnId: string | null;
  /** Of one that `/new` opened: the session before it, "" where there was none. Null: a first turn opened it. */
  readonly openedFrom: string | null;
  readonly createdAt: number;
  /** When a turn last began or ended. */
  readonly updatedAt: number;
}

/** Where a list of sessions goes on: the newest activity first. */
export interface SessionCursor {
  readonly updatedAt: number;
  readonly id: string;
}

export interface SessionPage {
  readonly after: SessionCursor | null;
  readonly limit: number;
}

/** @param running whether a turn runs in it. */
export function toChatSession(session: SessionRecord, running: boolean): ChatSession {
  const { id, projectId, userId, title, model, messageCount, metadata } = session;
  return {
    id,
    projectId,
    userId,
    title,
    model,
    messageCount,
    metadata: { ...metadata },
    running,
    createdAt: new Date(session.createdAt).toISOString(),
    updatedAt: new Date(session.updatedAt).toISOString(),
  };
}

/** One in which nothing was said yet. @param openedFrom null for one that a first turn opens. */
export function newSession(
  { projectId, userId }: ChatScope,
  fresh: Pick<SessionRecord, "id" | "model" | "openedFrom" | "createdAt">,
): SessionRecord {
  return {
    ...fresh,
    projectId,
    userId,
    title: "",
    titledByPerson: false,
    metadata: {},
    messageCount: 0,
    itemCount: 0,
    nextPosition: 1,
    lastTurnId: null,
    updatedAt: fresh.createdAt,
  };
}

/** With so many more items in its history, of these types. */
export function grown(session: SessionRecord, types: readonly string[], now: number): SessionRecord {
  return {
    ...counted(session, types, 1),
    nextPosition: session.nextPosition + types.length,
    updatedAt: now,
  };
}

/** With so many fewer; positions are not given again. */
export function shrunk(session: SessionRecord, types: readonly string[]): SessionRecord {
  return counted(session, types, -1);
}

function counted(session: SessionRecord, types: readonly string[], sign: 1 | -1): SessionRecord {
  const messages = types.filter((type) => type === "message").length;
  return {
    ...session,
    itemCount: session.itemCount + sign * types.length,
    messageCount: session.messageCount + sign * messages,
  };
}

/** The first question names it, once; a person's title stays. */
export function titled(session: SessionRecord, question: string): SessionRecord {
  return session.titledByPerson || session.title !== "" ? session : { ...session, title: titleOf(question) };
}
