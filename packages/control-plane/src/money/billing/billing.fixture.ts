import type { TokenUsage } from "@fairlead/dialects/calls/token-usage";
import { countingIds, TestClock } from "@fairlead/protocol/testing/test-clock";
import { pino } from "pino";
import { aloneOn } from "../../installation/cluster/membership.ts";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import { BoundCounters } from "../../telemetry/bounds/bound-counters.ts";
import { BillingService, type BillingServiceDeps, type PricedCall } from "./billing-service.ts";
import { BillingStore } from "./billing-store.ts";

export const PROJECT = "prj_1";
/** A nano-dollar a token. */
export const PRICES = { input: 1_000_000, output: 1_000_000, perRequest: 0 };

export function usageOf(inputTokens: number, outputTokens: number): TokenUsage {
  return { inputTokens, cachedInputTokens: 0, outputTokens, reasoningTokens: 0 };
}

/** A project's money on a store, and the processes that spend it. */
export class BillingStage {
  readonly store: OpenedDatabase;
  readonly clock = new TestClock();
  readonly bounds = new BoundCounters();
  /** The first process. */
  readonly billing: BillingService;
  readonly #spenderId: string;
  #calls = 0;

  constructor(store: OpenedDatabase, spenderId = "key_1") {
    this.store = store;
    this.#spenderId = spenderId;
    this.billing = this.process();
  }

  /** Another process, which knows nothing of those before it. */
  process(change: Partial<BillingServiceDeps> = {}): BillingService {
    const ids = countingIds(++this.#calls);
    return new BillingService({
      ...this.store,
      mode: "prepaid",
      clock: this.clock,
      ids,
      log: pino({ level: "silent" }),
      bounds: this.bounds,
      membership: aloneOn(`inc_${this.#calls}`),
      ...change,
    });
  }

  /** One that costs 100 at most. */
  call(change: Partial<PricedCall> = {}): PricedCall {
    return {
      callId: `req_${++this.#calls}`,
      projectId: PROJECT,
      spenderId: this.#spenderId,
      budget: null,
      prices: PRICES,
      inputTokens: 10,
      inputLimit: change.inputTokens ?? 10,
      outputLimit: 90,
      unseenTokens: 0,
      streamed: false,
      ...change,
    };
  }

  async credit(amount: number): Promise<void> {
    const kind = amount < 0 ? "adjust" : "credit";
    const change = { projectId: PROJECT, kind, amount, note: "" } as const;
    await this.billing.change(change, (write) => this.store.db.transaction().execute(write));
  }

  async balances(): Promise<{ stored: number; ledger: number }> {
    await this.billing.flush();
    const rows = new BillingStore(this.store.db);
    return { stored: await rows.balance(PROJECT), ledger: await rows.ledgerSum(PROJECT) };
  }

  async close(): Promise<void> {
    await this.billing.close();
    await this.store.close();
  }
}
