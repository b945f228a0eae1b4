import type { Clock } from "@fairlead/protocol/clock";
import type { IdSource } from "@fairlead/protocol/ids";
import { isUniqueViolation } from "../db/errors.ts";
import type { JsonObject } from "../inference/bridge/wire.ts";
import type { Dialect } from "../inference/dialect.ts";
import type { TokenUsage } from "../inference/token-usage.ts";
import { type ChatItem, type ResponsesItem, textOf } from "./chat-item.ts";
import type { ChatScope } from "./chat-scope.ts";
import type { ChatStores } from "./chat-stores.ts";
import type { ChatTurnStore } from "./chat-turn-store.ts";
import { answerOf, beginTurn, isOver, judgeRepeat, sessionBusy, sessionNotFound } from "./turn-begin.ts";
import { endTurn, INTERRUPTED } from "./turn-end.ts";
import type { NewTurnItems } from "./turn-input.ts";

/** A turn that is about to begin. */
export interface NewTurn {
  readonly turn: NewTurnItems;
  readonly dialect: Dialect;
  readonly model: string;
  /** How much history is read at most: the model's context less its answer, in tokens. */
  readonly contextTokens: number;
  /** SHA-256 (hex) of all that makes it this request. */
  readonly requestHash: string;
  readonly idempotencyKey: string | null;
  /** The session's last turn, to be asked again: its items become `superseded`. */
  readonly replaces?: string;
}

/** The newest of a session's live items, as far as they fit; in order. */
export interface HistoryTail {
  readonly items: readonly ChatItem[];
  /** Live items before them. */
  readonly olderItems: number;
}

export type BegunTurn =
  | {
      readonly replay: null;
      readonly sessionId: string;
      readonly turnId: string;
      /** What stands before this turn. */
      readonly history: HistoryTail;
      /** What this turn adds to it; of tool outputs, those that are new. */
      readonly items: readonly ResponsesItem[];
    }
  | { readonly replay: StoredAnswer; readonly sessionId: string };

/** What a call with an `Idempotency-Key` was answered. */
export interface StoredAnswer {
  readonly sessionId: string;
  readonly turnId: string;
  readonly dialect: Dialect;
  /** The final response object. */
  readonly response: JsonObject;
}

export type TurnStatus = "completed" | "incomplete" | "failed";

export interface TurnEnd {
  readonly status: TurnStatus;
  /** `completed`, `client_left`, `stopped`, or the error's code. */
  readonly why: string;
  readonly items: readonly ResponsesItem[];
  readonly usage: TokenUsage | null;
  /** For a repeat with the same `Idempotency-Key`; null: the repeat is asked anew. */
  readonly response: JsonObject | null;
  /** The question itself was refused: left in the history it would spoil every turn to come. */
  readonly withdrawn?: boolean;
}

/** The session's last turn, for asking it again. */
export interface LastTurn {
  readonly turnId: string;
  readonly turn: NewTurnItems;
  readonly dialect: Dialect;
  readonly model: string;
}

/** Open turns that are closed at a time. */
const OPEN_CHUNK = 50;

export interface TurnLogDeps {
  readonly stores: ChatStores;
  /** On the handle whose statements hold nobody up: a partial answer is written again and again. */
  readonly writes: Pick<ChatTurnStore, "setPartial">;
  readonly clock: Clock;
  readonly ids: IdSource;
}

export interface RepeatableTurn {
  readonly idempotencyKey: string;
  readonly requestHash: string;
}

/** What is stored of turns; each method is one transaction (decisions/0021). */
export class TurnLog {
  readonly #deps: TurnLogDeps;
  /** Turns that this process has begun and not yet ended. Any other that is open was lost with its process, or with the answer of a commit. */
  readonly #running = new Set<string>();

  constructor(deps: TurnLogDeps) {
    this.#deps = deps;
  }

  /**
   * A repeat's answer, before a session is opened or waited for; null: it is asked anew.
   * @throws DomainError idempotency_mismatch, session_busy
   */
  async find(scope: ChatScope, { idempotencyKey, requestHash }: RepeatableTurn): Promise<StoredAnswer | null> {
    const { stores, clock } = this.#deps;
    const earlier = await stores.turns.findByKey(scope, idempotencyKey);
    if (earlier === null || isOver(earlier, clock.now())) return null;
    judgeRepeat(earlier, { requestHash, isRunning: this.#running.has(earlier.id) });
    return answerOf(earlier);
  }

  /**
   * Stores the turn's items. A repeat of a question that got no answer supersedes it.
   * @param sessionId null opens a session, but for a repeat with the same `Idempotency-Key`, whose session goes on.
   * @throws DomainError session_not_found, session_busy, idempotency_mismatch; invalid_request for outputs of no open call.
   */
  async begin(scope: ChatScope, sessionId: string | null, turn: NewTurn): Promise<BegunTurn> {
    const { stores, ids, clock } = this.#deps;
    const now = clock.now();
    try {
      const isRunning = (id: string): boolean => this.isRunning(id);
      const begun = await stores.transaction((within) =>
        beginTurn(within, ids, { scope, sessionId, turn, now, isRunning }),
      );
      if (begun.replay === null) this.#running.add(begun.turnId);
      return begun;
    } catch (error) {
      // Two in the same session or with the same key at the same moment: the other one runs.
      if (isUniqueViolation(error)) throw sessionBusy();
      throw error;
    }
  }

  /** Whether this process runs it. One that is open and does not run was lost. */
  isRunning(turnId: string): boolean {
    return this.#running.has(turnId);
  }

  /** @param partial all that there is so far. */
  async flush(turnId: string, partial: readonly ResponsesItem[]): Promise<void> {
    await this.#deps.writes.setPartial(turnId, partial);
  }

  /** Nothing where the turn has ended before, or its session is gone. */
  async finish(turnId: string, end: TurnEnd): Promise<void> {
    const { stores, clock, ids } = this.#deps;
    const at = clock.now();
    await stores.transaction((within) => endTurn(within, ids, { turnId, end, at }));
    this.#running.delete(turnId);
  }

  /** Null where there is none. @throws DomainError session_not_found */
  async lastTurn(scope: ChatScope, sessionId: string): Promise<LastTurn | null> {
    const { stores } = this.#deps;
    const session = await stores.sessions.find(scope, sessionId);
    if (session === null) throw sessionNotFound();
    const turn = session.lastTurnId === null ? null : await stores.turns.find(scope.projectId, session.lastTurnId);
    if (turn === null) return null;
    const stored = await stores.items.listOfTurn(sessionId, turn.id, turn.firstPosition);
    const items = stored.slice(0, turn.questionCount).map(({ item }) => item);
    const { id: turnId, kind, dialect, model } = turn;
    const text = items.map(textOf).join("");
    return { turnId, turn: { kind, items, text, instructions: [] }, dialect, model };
  }

  /** At the start: turns that the process before this one left open keep what was stored of their answers. @returns how many. */
  async closeOpen(): Promise<number> {
    let closed = 0;
    for (;;) {
      const open = await this.#deps.stores.turns.listOpen(OPEN_CHUNK);
      for (const { turnId, items } of open) {
        await this.finish(turnId, { ...INTERRUPTED, items });
      }
      closed += open.length;
      if (open.length < OPEN_CHUNK) return closed;
    }
  }
}
