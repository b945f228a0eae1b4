import type { JsonObject } from "../inference/bridge/wire.ts";
import type { Dialect } from "../inference/dialect.ts";
import type { TokenUsage } from "../inference/token-usage.ts";
import type { ChatItem, ResponsesItem } from "./chat-item.ts";
import type { ChatScope } from "./chat-scope.ts";
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
}

/** The session's last turn, for asking it again. */
export interface LastTurn {
  readonly turnId: string;
  readonly turn: NewTurnItems;
  readonly dialect: Dialect;
  readonly model: string;
}

/** What is stored of turns; each method is one transaction. */
export interface TurnLog {
  /** A repeat's answer, before a session is opened or waited for. @throws DomainError idempotency_mismatch, session_busy */
  find(
    scope: ChatScope,
    call: { readonly idempotencyKey: string; readonly requestHash: string },
  ): Promise<StoredAnswer | null>;
  /**
   * Stores the turn's items. A repeat of a question that got no answer supersedes it.
   * @param sessionId null opens a session.
   * @throws DomainError session_not_found, session_busy, idempotency_mismatch; invalid_request for outputs of no open call.
   */
  begin(scope: ChatScope, sessionId: string | null, turn: NewTurn): Promise<BegunTurn>;
  /** @param partial all that there is so far. */
  flush(turnId: string, partial: readonly ResponsesItem[]): Promise<void>;
  /** Nothing where the turn has ended before, or its session is gone. */
  finish(turnId: string, end: TurnEnd): Promise<void>;
  /** Null where there is none. @throws DomainError session_not_found */
  lastTurn(scope: ChatScope, sessionId: string): Promise<LastTurn | null>;
  /** At the start: turns that the process before this one left open. @returns how many. */
  closeOpen(): Promise<number>;
}
