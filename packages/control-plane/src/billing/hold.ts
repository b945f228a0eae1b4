import type { DomainError } from "@fairlead/protocol/errors";
import type { TokenUsage } from "../inference/token-usage.ts";
import type { Account } from "./account.ts";
import { type Budget, firmer, windowsOf } from "./budget.ts";
import { costOf, type Prices } from "./prices.ts";
import type { SpenderAccount } from "./spender-account.ts";

/** What a call may generate before more must be set aside. */
export const STREAM_STEP_TOKENS = 512;

/** A call as far as its money goes. */
export interface BillableCall {
  /** The request id that its caller is told. */
  readonly callId: string;
  readonly projectId: string;
  /** The key or the agent that calls, whose budget counts; null for a member. */
  readonly spenderId: string | null;
  readonly budget: Budget | null;
  readonly prices: Prices;
  /** An estimate. */
  readonly inputTokens: number;
  /** The most that it can generate, as far as is known. */
  readonly outputLimit: number;
  /** A stream holds its output step by step, so that callers with huge limits do not starve (design §9). */
  readonly streamed: boolean;
}

/** How a hold is written down. */
export interface HoldBook {
  now(): number;
  opened(call: BillableCall, held: number): void;
  extended(
    call: BillableCall,
    change: { readonly added: number; readonly held: number; readonly delivered: number },
  ): void;
  settled(call: BillableCall, settlement: Settlement): void;
}

export interface Settlement {
  readonly held: number;
  readonly cost: number;
  /** What of the cost nobody pays. */
  readonly residue: number;
  /** What the key or the agent has spent by now, by window; null where that is not known yet. */
  readonly spent: ReadonlyMap<string, number> | null;
}

/** Whose money: null where nobody's is asked for, or nobody knows it yet. */
export interface Payers {
  readonly account: Account | null;
  readonly spender: SpenderAccount | null;
}

/** Money set aside for one call that runs. Judged at once, in memory; written behind. */
export class Hold {
  readonly #call: BillableCall;
  readonly #payers: Payers;
  readonly #book: HoldBook;
  #held = 0;
  #outputTokens: number;
  #settled = false;

  /** @throws DomainError insufficient_balance, key_budget_exceeded, held_by_running_calls */
  constructor(call: BillableCall, payers: Payers, book: HoldBook) {
    this.#call = call;
    this.#payers = payers;
    this.#book = book;
    this.#outputTokens = call.streamed ? Math.min(STREAM_STEP_TOKENS, call.outputLimit) : call.outputLimit;
    const needed = this.#worth(this.#outputTokens);
    const refusal = this.#judge(needed);
    if (refusal !== null) throw refusal;
    this.#take(needed);
    payers.account?.begin();
    book.opened(call, this.#held);
  }

  /**
   * Called as an answer grows, before what was generated reaches its caller. One in one piece has all of its money set aside: how
   * long it is in tokens is known at its end.
   * @param outputTokens generated until now. @returns the refusal when the next step is not to be had: the call has to end.
   */
  cover(outputTokens: number): DomainError | null {
    if (!this.#call.streamed || this.#settled) return null;
    if (outputTokens + STREAM_STEP_TOKENS / 2 <= this.#outputTokens) return null;
    const next = Math.min(outputTokens + STREAM_STEP_TOKENS, Math.max(outputTokens, this.#call.outputLimit));
    if (next <= this.#outputTokens) return null;
    const added = this.#worth(next) - this.#worth(this.#outputTokens);
    const refusal = this.#judge(added);
    if (refusal !== null) return refusal;
    this.#outputTokens = next;
    this.#take(added);
    this.#book.extended(this.#call, { added, held: this.#held, delivered: this.#worth(outputTokens) });
    return null;
  }

  /**
   * The end, on whatever path. Repeating it does nothing.
   * @param usage null where nothing was generated: nothing is charged. @param prices of the place that answered; null: it has none.
   * @returns what was charged, in nano-dollars.
   */
  settle(usage: TokenUsage | null, prices: Prices | null = this.#call.prices): number {
    if (this.#settled) return 0;
    this.#settled = true;
    const { account, spender } = this.#payers;
    const cost = usage === null || prices === null ? 0 : costOf(usage, prices);
    account?.hold(-this.#held);
    account?.end();
    // What an upstream counted beyond the hold and the balance is ours to bear (design §9).
    const residue = account === null ? 0 : Math.max(0, cost - account.balance);
    account?.charge(cost - residue);
    spender?.hold(-this.#held);
    const spent = spender?.spend(cost - residue, windowsOf(this.#book.now())) ?? null;
    this.#book.settled(this.#call, { held: this.#held, cost, residue, spent });
    return cost - residue;
  }

  #judge(needed: number): DomainError | null {
    const { account, spender } = this.#payers;
    const { budget } = this.#call;
    const need = { needed, own: this.#held, now: this.#book.now() };
    const overBudget = spender !== null && budget !== null ? spender.judge(budget, need) : null;
    return firmer(overBudget, account?.judge(needed, this.#held) ?? null);
  }

  #take(amount: number): void {
    const { account, spender } = this.#payers;
    this.#held += amount;
    account?.hold(amount);
    spender?.hold(amount);
  }

  #worth(outputTokens: number): number {
    const { inputTokens, prices } = this.#call;
    // How much of the input an upstream has cached is told at the end.
    const input = Math.max(prices.input, prices.cachedInput ?? 0);
    return costOf({ inputTokens, cachedInputTokens: 0, outputTokens }, { ...prices, input });
  }
}
