import type { TokenUsage } from "@fairlead/dialects/calls/token-usage";
import type { JsonObject } from "@fairlead/dialects/convert/wire";
import { isUniqueViolation } from "@fairlead/hosting/errors/store-errors";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { IdSource } from "@fairlead/protocol/values/ids";
import type { ServerMembership } from "../../installation/cluster/membership.ts";
import { type ResponsesItem, textOf } from "../items/chat-item.ts";
import type { ChatScope } from "../items/chat-scope.ts";
import type { HistoryTail } from "../items/history-input.ts";
import type { TurnDialect } from "../items/turn-dialect.ts";
import type { NewTurnItems } from "../items/turn-input.ts";
import type { ChatStores } from "./chat-stores.ts";
import type { ChatTurnStore } from "./chat-turn-store.ts";
import { HistoryCache, type KnownHistory } from "./history-cache.ts";
import { answerOf, beginTurn, isOver, judgeRepeat, sessionBusy, sessionNotFound } from "./turn-begin.ts";
import { endTurn, INTERRUPTED } from "./turn-end.ts";

/** A turn to start. */
export interface NewTurn {
  readonly turn: NewTurnItems;
  readonly dialect: TurnDialect;
  readonly model: string;
  /** Maximum history to read: the model's context minus its response, in tokens. */
  readonly contextTokens: number;
  /** SHA-256 (hex) of everything that identifies the request. */
  readonly requestHash: string;
  readonly idempotencyKey: string | null;
  /** The session's last turn, to be regenerated: its items become `superseded`. */
  readonly replaces?: string;
}

export type BegunTurn =
  | {
      readonly replay: null;
      readonly sessionId: string;
      readonly turnId: string;
      /** The history before this turn. */
      readonly history: HistoryTail;
      /** The items that this turn adds; of tool outputs, the new ones. */
      readonly items: readonly ResponsesItem[];
    }
  | { readonly replay: StoredAnswer; readonly sessionId: string };

/** The response to a call with an `Idempotency-Key`. */
export interface StoredAnswer {
  readonly sessionId: string;
  readonly turnId: string;
  readonly dialect: TurnDialect;
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
  /** For a retry with the same `Idempotency-Key`; null: the retry runs again. */
  readonly response: JsonObject | null;
  /** The question itself was rejected; kept in the history, it would fail every later turn. */
  readonly withdrawn?: boolean;
}

/** The session's last turn, to regenerate it. */
export interface LastTurn {
  readonly turnId: string;
  readonly turn: NewTurnItems;
  readonly dialect: TurnDialect;
  readonly model: string;
}

/** Number of open turns closed per batch. */
const OPEN_CHUNK = 50;

export interface TurnLogDeps {
  readonly stores: ChatStores;
  /** On the handle that blocks no other statement, because partial responses are written repeatedly. */
  readonly writes: Pick<ChatTurnStore, "setPartial">;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly membership: Pick<ServerMembership, "incarnation" | "living">;
}

export interface RepeatableTurn {
  readonly idempotencyKey: string;
  readonly requestHash: string;
}

/** Stored turns; each method is one transaction (decisions/0021). */
export class TurnLog {
  readonly #deps: TurnLogDeps;
  /** Turns started and not yet ended by this process. Any other open turn was lost with its process or with a commit's response. */
  readonly #running = new Set<string>();
  readonly #histories = new HistoryCache();

  constructor(deps: TurnLogDeps) {
    this.#deps = deps;
  }

  /**
   * The stored response for a retry, before a session is created or locked; null: run it again.
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
   * Stores the turn's items. A retry of a question without a response supersedes it.
   * @param sessionId null creates a session, except for a retry with the same `Idempotency-Key`, which uses the
   * existing one.
   * @throws DomainError session_not_found, session_busy, idempotency_mismatch; invalid_request for outputs of no open
   * call.
   */
  async begin(scope: ChatScope, sessionId: string | null, turn: NewTurn): Promise<BegunTurn> {
    const { stores, ids, clock, membership } = this.#deps;
    const now = clock.now();
    const owner = membership.incarnation;
    let read: KnownHistory | null = null;
    const histories: Pick<HistoryCache, "find" | "keep"> = {
      find: (session) => this.#histories.find(session),
      keep: (known) => {
        read = known;
      },
    };
    try {
      const isRunning = (id: string): boolean => this.isRunning(id);
      const begun = await stores.transaction((within) =>
        beginTurn(within, ids, { scope, sessionId, turn, now, owner, isRunning, histories }),
      );
      if (begun.replay === null) this.#running.add(begun.turnId);
      if (read !== null) this.#histories.keep(read);
      return begun;
    } catch (error) {
      // Two concurrent turns in the same session or with the same key: the other one runs.
      if (isUniqueViolation(error)) throw sessionBusy();
      throw error;
    }
  }

  /** Whether this process runs it. An open turn that does not run was lost. */
  isRunning(turnId: string): boolean {
    return this.#running.has(turnId);
  }

  /** @param partial everything so far. */
  async flush(turnId: string, partial: readonly ResponsesItem[]): Promise<void> {
    await this.#deps.writes.setPartial(turnId, partial);
  }

  /** Does nothing if the turn has already ended or its session is gone. */
  async finish(turnId: string, end: TurnEnd): Promise<void> {
    const { stores, clock, ids } = this.#deps;
    const at = clock.now();
    await stores.transaction((within) => endTurn(within, ids, { turnId, end, at }));
    this.#running.delete(turnId);
  }

  /** Null if there is none. @throws DomainError session_not_found */
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

  /** On start: closes turns of dead processes, keeping their stored partial responses. @returns the number closed. */
  async closeLost(): Promise<number> {
    const { membership, stores } = this.#deps;
    const living = await membership.living();
    let closed = 0;
    for (;;) {
      const open = await stores.turns.listLost(living, OPEN_CHUNK);
      for (const { turnId, items } of open) {
        await this.finish(turnId, { ...INTERRUPTED, items });
      }
      closed += open.length;
      if (open.length < OPEN_CHUNK) return closed;
    }
  }
}
