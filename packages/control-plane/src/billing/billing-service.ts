import type { Clock } from "@fairlead/protocol/clock";
import { DomainError } from "@fairlead/protocol/errors";
import type { IdSource } from "@fairlead/protocol/ids";
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import { isStoreAway } from "../db/errors.ts";
import type { WriteTogether } from "../db/opened-handle.ts";
import type { Database } from "../db/schema.ts";
import { WriteBehind } from "../db/write-behind.ts";
import { Account } from "./account.ts";
import { BillingBatch } from "./billing-batch.ts";
import { BillingStore } from "./billing-store.ts";
import { hasBudget, type Spent, spentAt, windowsOf } from "./budget.ts";
import { type BillableCall, Hold, type HoldBook, type Settlement } from "./hold.ts";
import type { BillingMode, LedgerEntry } from "./ledger.ts";
import { FREE, type Prices } from "./prices.ts";
import { ReadOnce } from "./read-once.ts";
import { SpenderAccount } from "./spender-account.ts";

export interface BillingServiceDeps {
  readonly db: Kysely<Database>;
  readonly writeTogether: WriteTogether;
  readonly mode: BillingMode;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly log: Logger;
}

/** A call of which nobody knows yet whether it has a price. */
export type PricedCall = Omit<BillableCall, "prices"> & { readonly prices: Prices | null };
type LedgerCall = Pick<BillableCall, "callId" | "projectId" | "spenderId">;
/** A change that is not a call's. */
export type BalanceChange = Pick<LedgerEntry, "projectId" | "kind" | "amount" | "note">;

const RECOVER_CHUNK = 500;

/** The ledger and the holds on it: a hard prepaid balance (design §9, decisions/0019). */
export class BillingService {
  readonly mode: BillingMode;
  readonly #load = { holds: 0, held: 0 };
  readonly #deps: BillingServiceDeps;
  readonly #store: BillingStore;
  readonly #written: WriteBehind<BillingBatch>;
  readonly #book: HoldBook;
  readonly #accounts: ReadOnce<Account>;
  readonly #spenders: ReadOnce<SpenderAccount>;

  constructor(deps: BillingServiceDeps) {
    this.#deps = deps;
    this.mode = deps.mode;
    const store = new BillingStore(deps.db);
    this.#store = store;
    this.#accounts = new ReadOnce(async (projectId) => new Account(await store.balance(projectId)));
    this.#spenders = new ReadOnce(
      async (spenderId) => new SpenderAccount(spenderId, await store.spending(spenderId, windowsOf(deps.clock.now()))),
    );
    this.#written = new WriteBehind({
      newBatch: () => new BillingBatch(),
      isEmpty: (batch) => batch.isEmpty,
      write: (batch) => deps.writeTogether(store.statements(batch)),
      log: deps.log,
      what: "the ledger",
    });
    this.#book = this.#createBook();
  }

  /** What is set aside for calls that run: how many they are, and nano-dollars. */
  get load(): { readonly holds: number; readonly held: number } {
    return this.#load;
  }

  /**
   * Sets money aside, or refuses.
   * @throws DomainError insufficient_balance, key_budget_exceeded, agent_budget_exceeded, held_by_running_calls; not_configured for a model without a
   * price in prepaid mode; unavailable while the store does not take writes.
   */
  async open(call: PricedCall): Promise<Hold> {
    const prices = call.prices ?? this.#withoutPrice();
    const account = this.mode === "prepaid" ? await this.account(call.projectId) : null;
    const spender = await this.#spenderOf(call);
    if (account !== null && !this.#written.isHealthy) throw cannotRecord();
    return new Hold({ ...call, prices }, { account, spender }, this.#book);
  }

  /** @throws DomainError unavailable when the store cannot be asked. */
  async account(projectId: string): Promise<Account> {
    return this.#accounts.known(projectId) ?? orUnavailable(this.#accounts.get(projectId));
  }

  /** What a key or an agent has spent and what its running calls hold. @throws DomainError unavailable when the store cannot be asked. */
  async spenderAccount(spenderId: string): Promise<SpenderAccount> {
    return this.#spenders.known(spenderId) ?? orUnavailable(this.#spenders.get(spenderId));
  }

  /** What keys' and agents' calls have cost today, this month and in all. */
  async spent(spenderIds: readonly string[]): Promise<ReadonlyMap<string, Spent>> {
    const now = this.#deps.clock.now();
    const unread = spenderIds.filter((id) => this.#spenders.known(id) === null);
    const read = await this.#store.spendingOf(unread, windowsOf(now));
    const spentBy = (id: string) => (window: string) =>
      this.#spenders.known(id)?.spent(window) ?? read.get(id)?.get(window) ?? 0;
    return new Map(spenderIds.map((id) => [id, spentAt(now, spentBy(id))]));
  }

  /**
   * Adds to a balance, or takes out of it, in a transaction of the caller's. What is added can be spent once that is committed.
   * @param within runs the transaction, and `write` in it; not at all where the change was made before.
   * @throws DomainError invalid_request for more than there is to take, or than a balance can hold; unavailable
   */
  async change<T>(
    change: BalanceChange,
    within: (write: (transaction: Kysely<Database>) => Promise<LedgerEntry>) => Promise<T>,
  ): Promise<T> {
    // Read first: on SQLite the transaction holds the one connection.
    const account = await this.account(change.projectId);
    let entry = null as LedgerEntry | null;
    const write = async (transaction: Kysely<Database>): Promise<LedgerEntry> => {
      account.beginChange(change.amount);
      entry = this.#entry({ ...change, callId: null, spenderId: null });
      const batch = new BillingBatch();
      batch.append(entry);
      await new BillingStore(transaction).write(batch);
      return entry;
    };
    let failed = true;
    try {
      const result = await within(write);
      failed = false;
      return result;
    } finally {
      if (entry !== null) account.endChange(change.amount, failed ? await this.#wasWritten(entry) : true);
    }
  }

  /**
   * At the start, before any call: what a process that died had set aside is given back, and what its callers had surely got is
   * charged. @returns how many calls there were.
   */
  async recover(): Promise<number> {
    let count = 0;
    for (;;) {
      const holds = await this.#store.openHolds(RECOVER_CHUNK);
      if (holds.length === 0) return count;
      count += holds.length;
      const batch = new BillingBatch();
      for (const { held, delivered, ...call } of holds) {
        const cost = Math.min(held, delivered);
        const spender = call.spenderId === null ? null : await this.spenderAccount(call.spenderId);
        const spent = spender?.spend(cost, windowsOf(this.#deps.clock.now())) ?? null;
        this.#record(
          batch,
          { ...call, note: "The server stopped during this call." },
          { held, cost, residue: 0, spent },
        );
      }
      await this.#store.transaction((billing) => billing.write(batch));
    }
  }

  /** Writes down all that was settled until now. */
  async flush(): Promise<void> {
    await this.#written.flush();
  }

  async close(): Promise<void> {
    await this.#written.close();
  }

  /**
   * Of a change whose transaction failed: the answer to its commit may have been lost. Where the store cannot be asked, what may be
   * gone counts as gone, and what may have come as not there; the next start reads what is.
   */
  async #wasWritten({ id, amount, projectId }: LedgerEntry): Promise<boolean> {
    try {
      return await this.#store.hasEntry(id);
    } catch (error) {
      this.#deps.log.error({ projectId, amount, err: error }, "whether a balance was changed is not known");
      return amount < 0;
    }
  }

  /** Where nobody is refused for it, what a spender has spent need not be known beforehand: then calls go on without the store. */
  async #spenderOf({ spenderId, budget }: PricedCall): Promise<SpenderAccount | null> {
    if (spenderId === null) return null;
    if (this.mode === "prepaid" || hasBudget(budget)) return this.spenderAccount(spenderId);
    return this.#spenders.known(spenderId);
  }

  #withoutPrice(): Prices {
    if (this.mode === "off") return FREE;
    throw new DomainError(
      "not_configured",
      "This model has no price, and this installation asks for payment beforehand. An administrator can set one.",
    );
  }

  #createBook(): HoldBook {
    const prepaid = this.mode === "prepaid";
    return {
      now: () => this.#deps.clock.now(),
      opened: (call, held) => {
        if (!prepaid) return;
        this.#load.holds++;
        this.#load.held += held;
        this.#keep(call, { added: held, held, delivered: 0 });
      },
      extended: (call, change) => {
        if (!prepaid) return;
        this.#load.held += change.added;
        this.#keep(call, change);
      },
      settled: (call, settlement) => {
        if (prepaid) {
          this.#load.holds--;
          this.#load.held -= settlement.held;
          this.#written.add((batch) => this.#record(batch, { ...call, note: "" }, settlement));
        } else {
          this.#count(call, settlement);
        }
      },
    };
  }

  #keep(
    { callId, projectId, spenderId }: LedgerCall,
    { added, held, delivered }: { readonly added: number; readonly held: number; readonly delivered: number },
  ): void {
    if (held === 0) return;
    const call = { callId, projectId, spenderId };
    const hold = { ...call, held, delivered, openedAt: this.#deps.clock.now() };
    this.#written.add((batch) => {
      if (added > 0) batch.append(this.#entry({ ...call, kind: "hold", amount: -added, note: "" }));
      batch.open(hold);
    });
  }

  /** What was held comes back, what the call cost goes. In an order in which no sum of the rows until then is below zero. */
  #record(
    batch: BillingBatch,
    { callId, projectId, spenderId, note }: LedgerCall & Pick<LedgerEntry, "note">,
    { held, cost, residue, spent }: Settlement,
  ): void {
    const call = { callId, projectId, spenderId, note };
    if (held > 0) batch.append(this.#entry({ ...call, kind: "release", amount: held }));
    if (residue > 0) {
      const beyond = "The call cost more than was left: written off.";
      batch.append(this.#entry({ ...call, kind: "adjust", amount: residue, note: beyond }));
    }
    if (cost > 0) batch.append(this.#entry({ ...call, kind: "settle", amount: -cost }));
    batch.close(callId);
    if (spenderId !== null && spent !== null && cost > residue) batch.spend(spenderId, spent);
  }

  /** With billing off there is no ledger, but what keys and agents have spent, as far as there are prices. */
  #count({ spenderId }: LedgerCall, { cost, spent }: Settlement): void {
    if (spenderId === null || cost === 0) return;
    const keep = (sums: ReadonlyMap<string, number>): void =>
      this.#written.add((batch) => batch.spend(spenderId, sums));
    if (spent !== null) {
      keep(spent);
      return;
    }
    this.spenderAccount(spenderId).then(
      (spender) => keep(spender.spend(cost, windowsOf(this.#deps.clock.now()))),
      (error: unknown) =>
        this.#deps.log.warn({ spenderId, cost, err: error }, "what a key or an agent has spent is not counted"),
    );
  }

  #entry(entry: Omit<LedgerEntry, "id" | "at">): LedgerEntry {
    const { clock, ids } = this.#deps;
    return { ...entry, id: ids.next("ledgerEntry"), at: clock.now() };
  }
}

async function orUnavailable<T>(reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (cause) {
    throw isStoreAway(cause) ? cannotRecord(cause) : cause;
  }
}

function cannotRecord(cause?: unknown): DomainError {
  const message = "The balance cannot be checked just now. Try again shortly.";
  return new DomainError("unavailable", message, { retryAfterSeconds: 1, cause });
}
