import type { TokenUsage } from "@fairlead/dialects/calls/token-usage";
import { costOf, type Prices } from "@fairlead/inference/ports/prices";
import type { DomainError } from "@fairlead/protocol/errors";
import type { Account } from "./account.ts";
import { type Budget, firmer, windowsOf } from "./budget.ts";
import type { SpenderAccount } from "./spender-account.ts";

/** Output tokens that are reserved at a time. */
export const STREAM_STEP_TOKENS = 512;
/** The same once an estimate exceeds the call's limit. Upstreams that respect the limit rarely need it. */
const BEYOND_LIMIT_STEP_TOKENS = 64;

/** The billing-related data of a call. */
export interface BillableCall {
  /** The request ID that the client sees. */
  readonly callId: string;
  readonly projectId: string;
  /** The key or agent whose budget applies; null for a member. */
  readonly spenderId: string | null;
  readonly budget: Budget | null;
  readonly prices: Prices;
  /** Estimated. */
  readonly inputTokens: number;
  /** Maximum input tokens. */
  readonly inputLimit: number;
  /** Maximum output tokens. */
  readonly outputLimit: number;
  /** Output tokens that the stream does not show; reserved from the start. */
  readonly unseenTokens: number;
  /** Streams reserve output in steps, so that calls with huge limits are not rejected (decisions/0019). */
  readonly streamed: boolean;
}

/** Records changes of a hold. */
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
  /** The part of the cost that is not charged. */
  readonly residue: number;
  /** Whether the charge exceeds the hold. */
  readonly isBeyondHold: boolean;
  /** The budget windows that it counts in. */
  readonly windows: readonly string[];
  /** Whether the key's or agent's account has counted it. */
  readonly isCounted: boolean;
}

/** The accounts to charge; null if none applies or it could not be read. */
export interface Payers {
  readonly account: Account | null;
  readonly spender: SpenderAccount | null;
}

/** Money reserved for one running call. Checked in memory, written asynchronously. */
export class Hold {
  readonly #call: BillableCall;
  readonly #payers: Payers;
  readonly #book: HoldBook;
  #held = 0;
  #outputTokens: number;
  /** Whether a step was rejected: its output is not delivered. */
  #refused = false;
  #settled = false;

  /** @throws DomainError insufficient_balance, key_budget_exceeded, held_by_running_calls */
  constructor(call: BillableCall, payers: Payers, book: HoldBook) {
    this.#call = call;
    this.#payers = payers;
    this.#book = book;
    const { streamed, outputLimit, unseenTokens } = call;
    this.#outputTokens = streamed ? Math.min(STREAM_STEP_TOKENS + unseenTokens, outputLimit) : outputLimit;
    const needed = this.#worth(this.#outputTokens);
    const refusal = this.#judge(needed);
    if (refusal !== null) throw refusal;
    this.#take(needed);
    payers.account?.begin();
    book.opened(call, this.#held);
  }

  /**
   * Called as a response grows, before new output is sent. A response in one piece has its full cost reserved, because
   * its length in tokens is known only at the end.
   * @param seenTokens generated so far.
   * @returns the error that must end the call if the next step cannot be reserved, else null.
   */
  cover(seenTokens: number): DomainError | null {
    if (!this.#call.streamed || this.#settled) return null;
    const outputTokens = seenTokens + this.#call.unseenTokens;
    const next = this.#nextStep(outputTokens);
    if (next <= this.#outputTokens) return null;
    const added = this.#worth(next) - this.#worth(this.#outputTokens);
    const refusal = this.#judge(added);
    if (refusal !== null) {
      this.#refused = true;
      return refusal;
    }
    this.#outputTokens = next;
    this.#take(added);
    this.#book.extended(this.#call, { added, held: this.#held, delivered: this.#delivered(seenTokens) });
    return null;
  }

  /**
   * Ends the hold, however the call ended. Repeated calls do nothing.
   * @param usage null if nothing was generated: nothing is charged.
   * @param prices of the backend that responded; null: it has none.
   * @param estimated whether the usage is our estimate rather than the upstream's count.
   * @returns the charge in nano-dollars.
   */
  settle(usage: TokenUsage | null, prices: Prices | null = this.#call.prices, estimated = false): number {
    if (this.#settled) return 0;
    this.#settled = true;
    const { account, spender } = this.#payers;
    const worth = usage === null || prices === null ? 0 : costOf(usage, prices);
    // More than the hold is charged only if the upstream counted it and the client received it.
    const cost = estimated || this.#refused ? Math.min(worth, this.#held) : worth;
    account?.hold(-this.#held);
    account?.end();
    // The platform pays what exceeds both hold and balance (decisions/0019).
    const residue = account === null ? 0 : Math.max(0, cost - account.balance);
    account?.charge(cost - residue);
    spender?.hold(-this.#held);
    const windows = windowsOf(this.#book.now());
    spender?.spend(cost - residue, windows);
    const counted = { windows, isCounted: spender !== null, isBeyondHold: cost > this.#held };
    this.#book.settled(this.#call, { held: this.#held, cost, residue, ...counted });
    return cost - residue;
  }

  /** @returns the total number of tokens to reserve now. */
  #nextStep(outputTokens: number): number {
    const { outputLimit } = this.#call;
    const held = this.#outputTokens;
    if (outputTokens > outputLimit) return outputTokens <= held ? held : outputTokens + BEYOND_LIMIT_STEP_TOKENS;
    const isNear = outputTokens + STREAM_STEP_TOKENS / 2 > held;
    return isNear ? Math.min(outputTokens + STREAM_STEP_TOKENS, outputLimit) : held;
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
    return this.#atMost(this.#call.inputLimit, outputTokens);
  }

  /** What a stream has certainly delivered. */
  #delivered(outputTokens: number): number {
    return this.#atMost(this.#call.inputTokens, outputTokens);
  }

  #atMost(inputTokens: number, outputTokens: number): number {
    const { prices } = this.#call;
    // The number of cached input tokens is known only at the end.
    const input = Math.max(prices.input, prices.cachedInput ?? 0);
    return costOf({ inputTokens, cachedInputTokens: 0, outputTokens }, { ...prices, input });
  }
}
