import { isCheckViolation, isStoreAway } from "@fairlead/hosting/errors/store-errors";
import { FREE, type Prices } from "@fairlead/inference/ports/prices";
import { DomainError } from "@fairlead/protocol/errors";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { IdSource } from "@fairlead/protocol/values/ids";
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import type { ServerMembership } from "../../installation/cluster/membership.ts";
import type { WriteTogether } from "../../installation/db/opened-handle.ts";
import type { Database } from "../../installation/db/tables/schema.ts";
import { WriteBehind } from "../../installation/db/write-behind.ts";
import type { BoundCounters } from "../../telemetry/bounds/bound-counters.ts";
import { Account } from "./account.ts";
import { BillingBatch } from "./billing-batch.ts";
import { BillingStore } from "./billing-store.ts";
import { hasBudget, type Spent, spentAt, windowsOf } from "./budget.ts";
import { type BillableCall, Hold, type HoldBook, type Settlement } from "./hold.ts";
import type { BillingMode, LedgerEntry } from "./ledger.ts";
import { SpenderAccount } from "./spender-account.ts";

/** Values read from the store once; afterwards only this process changes them. */
class ReadOnce<T> {
  readonly #read: (id: string) => Promise<T>;
  readonly #known = new Map<string, T>();
  readonly #reading = new Map<string, Promise<T>>();

  constructor(read: (id: string) => Promise<T>) {
    this.#read = read;
  }

  known(id: string): T | null {
    return this.#known.get(id) ?? null;
  }

  /** Concurrent calls share one read; after a failure the next call retries. @throws what `read` throws. */
  get(id: string): Promise<T> {
    const known = this.#known.get(id);
    if (known !== undefined) return Promise.resolve(known);
    const reading = this.#reading.get(id) ?? this.#begin(id);
    this.#reading.set(id, reading);
    return reading;
  }

  async #begin(id: string): Promise<T> {
    try {
      const value = await this.#read(id);
      this.#known.set(id, value);
      return value;
    } finally {
      this.#reading.delete(id);
    }
  }
}

export interface BillingServiceDeps {
  readonly db: Kysely<Database>;
  readonly writeTogether: WriteTogether;
  readonly mode: BillingMode;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly log: Logger;
  readonly bounds: Pick<BoundCounters, "reached">;
  readonly membership: Pick<ServerMembership, "incarnation" | "living">;
}

/** A call whose price is not known yet. */
export type PricedCall = Omit<BillableCall, "prices"> & { readonly prices: Prices | null };
type LedgerCall = Pick<BillableCall, "callId" | "projectId" | "spenderId">;
/** A change that does not belong to a call. */
export type BalanceChange = Pick<LedgerEntry, "projectId" | "kind" | "amount" | "note">;

type WithinTransaction<T> = (write: (transaction: Kysely<Database>) => Promise<LedgerEntry>) => Promise<T>;

const RECOVER_CHUNK = 500;
const CHANGE_TRIES = 3;

/** The ledger and the holds on it: a hard prepaid balance (decisions/0019). */
export class BillingService {
  readonly mode: BillingMode;
  readonly #load = { holds: 0, held: 0 };
  #batches = 0;
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
      newBatch: () => new BillingBatch({ owner: deps.membership.incarnation, number: ++this.#batches }),
      isEmpty: (batch) => batch.isEmpty,
      write: (batch) => deps.writeTogether(store.statements(batch)),
      clock: deps.clock,
      log: deps.log,
      what: "the ledger",
    });
    this.#book = this.#createBook();
  }

  /** Number and nano-dollars of the holds of running calls. */
  get load(): { readonly holds: number; readonly held: number } {
    return this.#load;
  }

  /**
   * Reserves money, or rejects the call.
   * @throws DomainError insufficient_balance, key_budget_exceeded, agent_budget_exceeded, held_by_running_calls; not_configured for a model without a
   * price in prepaid mode; unavailable while the store rejects writes.
   */
  async open(call: PricedCall): Promise<Hold> {
    const prices = call.prices ?? this.#withoutPrice();
    const account = this.mode === "prepaid" ? await this.account(call.projectId) : null;
    const spender = await this.#spenderOf(call);
    if (account !== null && !this.#written.isHealthy) throw cannotRecord();
    return new Hold({ ...call, prices }, { account, spender }, this.#book);
  }

  /** @throws DomainError unavailable if the store cannot be read. */
  async account(projectId: string): Promise<Account> {
    return this.#accounts.known(projectId) ?? orUnavailable(this.#accounts.get(projectId));
  }

  /** Spending of a key or agent, and the holds of its running calls. @throws DomainError unavailable if the store cannot be read. */
  async spenderAccount(spenderId: string): Promise<SpenderAccount> {
    return this.#spenders.known(spenderId) ?? orUnavailable(this.#spenders.get(spenderId));
  }

  /** Costs of keys and agents today, this month and in total. */
  async spent(spenderIds: readonly string[]): Promise<ReadonlyMap<string, Spent>> {
    const now = this.#deps.clock.now();
    const unread = spenderIds.filter((id) => this.#spenders.known(id) === null);
    const read = await this.#store.spendingOf(unread, windowsOf(now));
    const spentBy = (id: string) => (window: string) =>
      this.#spenders.known(id)?.spent(window) ?? read.get(id)?.get(window) ?? 0;
    return new Map(spenderIds.map((id) => [id, spentAt(now, spentBy(id))]));
  }

  /**
   * Changes a balance in the caller's transaction. Added credits can be spent after the commit.
   * @param within runs the transaction with `write` in it, or not at all if the change was made before.
   * @throws DomainError invalid_request if the balance would be negative or too large; unavailable
   */
  async change<T>(change: BalanceChange, within: WithinTransaction<T>): Promise<T> {
    // Read first, because on SQLite the transaction holds the only connection.
    const account = await this.account(change.projectId);
    for (let triesLeft = CHANGE_TRIES; ; triesLeft--) {
      // Releases of finished calls may not be written yet, and the store would reject the withdrawal.
      if (change.amount < 0) await orUnavailable(this.#written.flush());
      try {
        return await this.#tryChange(account, change, within);
      } catch (error) {
        if (!isCheckViolation(error) || triesLeft <= 1) throw error;
      }
    }
  }

  async #tryChange<T>(account: Account, change: BalanceChange, within: WithinTransaction<T>): Promise<T> {
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
   * On start, before any call: settles the holds of dead processes, charging what their callers certainly received.
   * @returns the number of calls.
   */
  async recover(): Promise<number> {
    const living = await this.#deps.membership.living();
    await this.#store.forgetBatches(living);
    let count = 0;
    for (;;) {
      const holds = await this.#store.lostHolds(living, RECOVER_CHUNK);
      if (holds.length === 0) return count;
      count += holds.length;
      const batch = new BillingBatch();
      for (const { held, delivered, ...call } of holds) {
        const cost = Math.min(held, delivered);
        const spender = call.spenderId === null ? null : await this.spenderAccount(call.spenderId);
        const windows = windowsOf(this.#deps.clock.now());
        spender?.spend(cost, windows);
        const settlement = { held, cost, residue: 0, isBeyondHold: false, windows, isCounted: true };
        this.#record(batch, { ...call, note: "The server stopped during this call." }, settlement);
      }
      await this.#store.transaction((billing) => billing.write(batch));
    }
  }

  /** Writes everything settled so far. */
  async flush(): Promise<void> {
    await this.#written.flush();
  }

  async close(): Promise<void> {
    await this.#written.close();
  }

  /** After a failed transaction, the commit may still have happened. If the store cannot be read, assumes the lower balance until the next start. */
  async #wasWritten({ id, amount, projectId }: LedgerEntry): Promise<boolean> {
    try {
      return await this.#store.hasEntry(id);
    } catch (error) {
      this.#deps.log.error({ projectId, amount, err: error }, "it is unknown whether a balance was changed");
      return amount < 0;
    }
  }

  /** Without budgets to enforce, spending need not be known in advance, so calls continue without the store. */
  async #spenderOf({ spenderId, budget }: PricedCall): Promise<SpenderAccount | null> {
    if (spenderId === null) return null;
    if (this.mode === "prepaid" || hasBudget(budget)) return this.spenderAccount(spenderId);
    return this.#spenders.known(spenderId);
  }

  #withoutPrice(): Prices {
    if (this.mode === "off") return FREE;
    throw new DomainError(
      "not_configured",
      "This model has no price, and this installation requires prepayment. An administrator can set a price.",
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
        if (settlement.isBeyondHold) this.#deps.bounds.reached("call_cost");
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
    const hold = {
      ...call,
      held,
      delivered,
      openedAt: this.#deps.clock.now(),
      owner: this.#deps.membership.incarnation,
    };
    this.#written.add((batch) => {
      if (added > 0) batch.append(this.#entry({ ...call, kind: "hold", amount: -added, note: "" }));
      batch.open(hold);
    });
  }

  /** Releases the hold and charges the cost, in an order in which no partial sum is negative. */
  #record(
    batch: BillingBatch,
    { callId, projectId, spenderId, note }: LedgerCall & Pick<LedgerEntry, "note">,
    { held, cost, residue, windows }: Settlement,
  ): void {
    const call = { callId, projectId, spenderId, note };
    if (held > 0) batch.append(this.#entry({ ...call, kind: "release", amount: held }));
    if (residue > 0) {
      const beyond = "The call cost more than the remaining balance. The difference was written off.";
      batch.append(this.#entry({ ...call, kind: "adjust", amount: residue, note: beyond }));
    }
    if (cost > 0) batch.append(this.#entry({ ...call, kind: "settle", amount: -cost }));
    batch.close(callId);
    if (spenderId !== null && cost > residue) batch.spend(spenderId, cost - residue, windows);
  }

  /** With billing off there is no ledger, but the spending of keys and agents is recorded where prices are known. */
  #count({ spenderId }: LedgerCall, { cost, windows, isCounted }: Settlement): void {
    if (spenderId === null || cost === 0) return;
    const keep = (): void => this.#written.add((batch) => batch.spend(spenderId, cost, windows));
    if (isCounted) {
      keep();
      return;
    }
    this.spenderAccount(spenderId).then(
      (spender) => {
        spender.spend(cost, windows);
        keep();
      },
      (error: unknown) =>
        this.#deps.log.warn({ spenderId, cost, err: error }, "the spending of a key or an agent is not counted"),
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
  const message = "The balance cannot be checked at the moment. Retry shortly.";
  return new DomainError("unavailable", message, { retryAfterSeconds: 1, cause });
}
