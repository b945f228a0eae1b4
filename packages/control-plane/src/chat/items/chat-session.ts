import type { ChatSession } from "@fairlead/protocol/chat";
import type { ChatScope } from "./chat-scope.ts";
import { titleOf } from "./chat-title.ts";

/** A stored chat session (decisions/0021). Pure. Times are Unix milliseconds. */
export interface SessionRecord {
  readonly id: string;
  readonly projectId: string;
  readonly userId: string;
  readonly title: string;
  readonly titledByPerson: boolean;
  /** The model of its last turn. */
  readonly model: string | null;
  readonly metadata: Readonly<Record<string, string>>;
  readonly messageCount: number;
  readonly itemCount: number;
  readonly nextPosition: number;
  readonly lastTurnId: string | null;
  /** For a session opened by `/new`: the previous session, or "" if there was none. Null: opened by its first turn. */
  readonly openedFrom: string | null;
  readonly createdAt: number;
  /** When a turn last started or ended. */
  readonly updatedAt: number;
}

/** Position in a list of sessions, most recent activity first. */
export interface SessionCursor {
  readonly updatedAt: number;
  readonly id: string;
}

export interface SessionPage {
  readonly after: SessionCursor | null;
  readonly limit: number;
}

/** @param running whether a turn is running in it. */
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

/** An empty session. @param openedFrom null if its first turn creates it. */
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

/** With items of these types added to its history. */
export function grown(session: SessionRecord, types: readonly string[], now: number): SessionRecord {
  return {
    ...counted(session, types, 1),
    nextPosition: session.nextPosition + types.length,
    updatedAt: now,
  };
}

/** With items of these types removed; positions are not reused. */
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

/** The first question sets the title once; a user's title is kept. */
export function titled(session: SessionRecord, question: string): SessionRecord {
  return session.titledByPerson || session.title !== "" ? session : { ...session, title: titleOf(question) };
}
