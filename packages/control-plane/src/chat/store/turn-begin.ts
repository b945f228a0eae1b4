import { DomainError } from "@fairlead/protocol/errors";
import type { IdSource } from "@fairlead/protocol/values/ids";
import { itemTypeOf, type ResponsesItem, type StoredItem } from "../items/chat-item.ts";
import type { ChatScope } from "../items/chat-scope.ts";
import { grown, newSession, type SessionRecord, shrunk, titled } from "../items/chat-session.ts";
import { roomFor } from "../items/history-input.ts";
import { newOutputs } from "../items/open-calls.ts";
import type { ChatStores } from "./chat-stores.ts";
import type { TurnRecord } from "./chat-turn-store.ts";
import { type HistoryCache, readHistory } from "./history-cache.ts";
import { endTurn, INTERRUPTED } from "./turn-end.ts";
import type { BegunTurn, NewTurn, StoredAnswer } from "./turn-log.ts";
import { hashQuestion, supersedes } from "./turn-rules.ts";

/** Starts a turn, inside one transaction (decisions/0021). */

/** Lifetime of an `Idempotency-Key`. */
export const TURN_KEY_KEEP_MS = 24 * 3_600_000;
const BUSY_RETRY_SECONDS = 2;

export interface TurnToBegin {
  readonly scope: ChatScope;
  readonly sessionId: string | null;
  readonly turn: NewTurn;
  readonly now: number;
  /** The incarnation of this process. */
  readonly owner: string;
  /** Whether this process runs the turn. An open turn that does not run was lost. */
  readonly isRunning: (turnId: string) => boolean;
  /** Updated with what was read, after the commit. */
  readonly histories: Pick<HistoryCache, "find" | "keep">;
}

export async function beginTurn(stores: ChatStores, ids: IdSource, asked: TurnToBegin): Promise<BegunTurn> {
  const { scope, turn, now } = asked;
  const earlier = await takeKey(stores, asked);
  const replay = earlier && answerOf(earlier);
  if (replay) return { replay, sessionId: replay.sessionId };
  const held = await holdSession(stores, ids, { ...asked, earlier });
  const { session, last } = await withoutLost(stores, ids, { ...asked, session: held });
  const questionHash = hashQuestion(turn.turn.items);
  const live = await withoutReplaced(stores, { session, last, turn, questionHash, earlier, now });
  const room = roomFor(turn.turn, turn.contextTokens);
  const read = await readHistory(stores.items, live, { room, known: asked.histories.find(live) });
  asked.histories.keep(read.known);
  const history = read.tail;
  const items = turn.turn.kind === "outputs" ? newOutputs(turn.turn.items, history.items) : turn.turn.items;
  const { owner } = asked;
  const record = toRecord({ id: ids.next("chatTurn"), scope, owner, session: live, turn, questionHash, items, now });
  await stores.turns.insert(record);
  await stores.items.append(session.id, questionItems(record, items, ids));
  const changed = titled(grown(live, items.map(itemTypeOf), now), turn.turn.text);
  await stores.sessions.setActivity({ ...changed, model: turn.model, lastTurnId: record.id });
  return { replay: null, sessionId: session.id, turnId: record.id, history, items };
}

/** @throws DomainError idempotency_mismatch, session_busy */
export function judgeRepeat(
  earlier: TurnRecord,
  { requestHash, isRunning }: { readonly requestHash: string; readonly isRunning: boolean },
): void {
  if (earlier.requestHash !== requestHash) {
    const message = "This `Idempotency-Key` was used with a different call. Use a new key for a new call.";
    throw new DomainError("idempotency_mismatch", message, { param: "Idempotency-Key" });
  }
  if (isRunning) throw sessionBusy();
}

export const isOver = ({ beganAt, status }: TurnRecord, now: number): boolean =>
  status !== "open" && now - beganAt >= TURN_KEY_KEEP_MS;

/** Null if nothing is kept for retries. */
export function answerOf({ id, sessionId, dialect, response }: TurnRecord): StoredAnswer | null {
  return response && { sessionId, turnId: id, dialect, response };
}

export function sessionBusy(): DomainError {
  const message = "Another turn of this chat session is still running. Wait for it to finish, or stop it.";
  return new DomainError("session_busy", message, { retryAfterSeconds: BUSY_RETRY_SECONDS });
}

export function sessionNotFound(): DomainError {
  return new DomainError("session_not_found", "There is no such chat session.", {
    param: "Service-Session-Id",
  });
}

/** The turn that used the key earlier. It loses the key if it is run again. */
async function takeKey(stores: ChatStores, asked: TurnToBegin): Promise<TurnRecord | null> {
  const { scope, turn, now } = asked;
  const { idempotencyKey, requestHash } = turn;
  const earlier = idempotencyKey === null ? null : await stores.turns.findByKey(scope, idempotencyKey);
  if (earlier === null) return null;
  const isForgotten = isOver(earlier, now);
  if (!isForgotten) judgeRepeat(earlier, { requestHash, isRunning: asked.isRunning(earlier.id) });
  if (isForgotten || earlier.response === null) await stores.turns.forgetKey(scope.projectId, earlier.id);
  return isForgotten ? null : earlier;
}

interface Held extends TurnToBegin {
  readonly earlier: TurnRecord | null;
}

/** The session, locked until the end of the transaction. A retry without a session uses the one that its first call created. */
async function holdSession(stores: ChatStores, ids: IdSource, held: Held): Promise<SessionRecord> {
  const { scope, sessionId, earlier, turn, now } = held;
  const named = sessionId ?? earlier?.sessionId ?? null;
  const found = named === null ? null : await stores.sessions.findForUpdate(scope, named);
  if (found !== null) return found;
  if (sessionId !== null) throw sessionNotFound();
  const fresh = { id: ids.next("chatSession"), model: turn.model, openedFrom: null, createdAt: now };
  const session = newSession(scope, fresh);
  await stores.sessions.insert(session);
  return session;
}

interface SessionWithLast {
  readonly session: SessionRecord;
  readonly last: TurnRecord | null;
}

/** The session after ending a lost turn with its stored content. @throws DomainError session_busy */
async function withoutLost(
  stores: ChatStores,
  ids: IdSource,
  { scope, session, now, isRunning }: TurnToBegin & { readonly session: SessionRecord },
): Promise<SessionWithLast> {
  const last = await lastTurnOf(stores, session);
  if (last?.status !== "open") return { session, last };
  if (isRunning(last.id)) throw sessionBusy();
  const items = (await stores.turns.findPartial(session.id))?.items ?? [];
  await endTurn(stores, ids, { turnId: last.id, end: { ...INTERRUPTED, items }, at: now });
  const ended = (await stores.sessions.find(scope, session.id)) ?? session;
  return { session: ended, last: await lastTurnOf(stores, ended) };
}

async function lastTurnOf(stores: ChatStores, { projectId, lastTurnId }: SessionRecord): Promise<TurnRecord | null> {
  return lastTurnId === null ? null : await stores.turns.find(projectId, lastTurnId);
}

interface Replacing extends SessionWithLast {
  readonly questionHash: string;
  readonly turn: NewTurn;
  readonly earlier: TurnRecord | null;
  readonly now: number;
}

/** The session without its last turn, for regenerating it. */
async function withoutReplaced(stores: ChatStores, replacing: Replacing): Promise<SessionRecord> {
  const { session, last } = replacing;
  if (last === null || !isReplaced(last, replacing)) return session;
  return shrunk(session, await stores.items.supersede(session.id, last.id, last.firstPosition));
}

function isReplaced(last: TurnRecord, { turn, questionHash, earlier, now }: Replacing): boolean {
  if (turn.replaces !== undefined) {
    // Another turn was added in between.
    if (turn.replaces !== last.id) throw sessionBusy();
    return true;
  }
  if (earlier?.id === last.id) return true;
  return (
    last.status !== "open" &&
    supersedes({ ...last, endedAt: last.endedAt ?? now, status: last.status }, questionHash, now)
  );
}

interface Recorded {
  readonly questionHash: string;
  readonly id: string;
  readonly scope: ChatScope;
  readonly owner: string;
  readonly session: SessionRecord;
  readonly turn: NewTurn;
  readonly items: readonly ResponsesItem[];
  readonly now: number;
}

function toRecord({ id, scope, owner, session, turn, questionHash, items, now }: Recorded): TurnRecord {
  const { dialect, model, requestHash, idempotencyKey } = turn;
  return {
    ...scope,
    id,
    owner,
    dialect,
    model,
    requestHash,
    idempotencyKey,
    sessionId: session.id,
    kind: turn.turn.kind,
    status: "open",
    why: "",
    questionHash,
    firstPosition: session.nextPosition,
    questionCount: items.length,
    answerCount: 0,
    beganAt: now,
    endedAt: null,
    response: null,
  };
}

function questionItems(turn: TurnRecord, items: readonly ResponsesItem[], ids: IdSource): StoredItem[] {
  return items.map((item, index) => ({
    id: ids.next("message"),
    turnId: turn.id,
    position: turn.firstPosition + index,
    status: "completed",
    item,
    createdAt: turn.beganAt,
    usage: null,
  }));
}
