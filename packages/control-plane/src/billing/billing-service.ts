import type { Clock } from "@fairlead/protocol/clock";
import { DomainError } from "@fairlead/protocol/errors";
import type { IdSource } from "@fairlead/protocol/ids";
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import { isStoreAway } from "../db/errors.ts";
import type { WriteTogether } from "../db/opened-handle.ts";
import type { Database } from "../db/schema.ts";
import { WriteBehind } from "../db/write-behind.ts";
import { Account, type KeyAccount } from "./account.ts";
import { BillingBatch } from "./billing-batch.ts";
import { BillingStore } from "./billing-store.ts";
import { windowsOf } from "./budget.ts";
import { type BillableCall, Hold, type HoldBook } from "./hold.ts";
import type { BillingMode, LedgerEntry } from "./ledger.ts";
import { FREE, type Prices } from "./prices.ts";

export interface BillingServiceDeps {
  readonly db: Kysely<Database>;
  readonly writeTogether: WriteTogether;
  readonly mode: BillingMode;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly log: Logger;
}

export type PricedCall = Omit<BillableCall, "prices"> & { readonly prices: Prices | null };

const RECOVER_CHUNK = 500;

/** The ledger and the holds on it: a hard prepaid balance (design §9). */
export class BillingService {
  readonly mode: BillingMode;
  readonly #load = { holds: 0, held: 0 };
  readonly #deps: BillingServiceDeps;
  readonly #written: WriteBehind<BillingBatch>;
  readonly #book: HoldBook;
  /** Read once; from then on this process is the one that changes them. */
  readonly #accounts = new Map<string, Promise<Account>>();

  constructor(deps: BillingServiceDeps) {
    this.#deps = deps;
    this.mode = deps.mode;
    const store = new BillingStore(deps.db);
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
   * @throws DomainError insufficient_balance, key_budget_exceeded, held_by_running_calls; not_configured for a model without a
   * price in prepaid mode; unavailable while the store does not take writes.
   */
  async open(call: PricedCall): Promise<Hold> {
    const prices = call.prices ?? this.#withoutPrice();
    const payers = {
      account: this.mode === "prepaid" ? await this.account(call.projectId) : null,
      key: await this.#payingKey(call),
    };
    if (!this.#written.isHealthy && this.mode === "prepaid") throw cannotRecord();
    return new Hold({ ...call, prices }, payers, this.#book);
  }

  /** @throws DomainError unavailable when the store cannot be asked. */
  async account(projectId: string): Promise<Account> {
    let account = this.#accounts.get(projectId);
    if (account === undefined) {
      account = new BillingStore(this.#deps.db).balance(projectId).then((balance) => new Account(balance));
      this.#accounts.set(projectId, account);
      account.catch(() => this.#accounts.delete(projectId));
    }
    try {
      return await account;
    } catch (cause) {
      throw isStoreAway(cause) ? cannotRecord(cause) : cause;
    }
  }

  /**
   * Adds to a balance, or takes from it, inside the caller's transaction.
   * @param input.account read before the transaction, which holds the store's one connection.
   * @returns what to do once that is committed: until then nobody may spend it.
   */
  async change(
    transaction: Kysely<Database>,
    input: Pick<LedgerEntry, "projectId" | "kind" | "amount" | "note"> & { readonly account: Account },
  ): Promise<{ readonly entry: LedgerEntry; readonly committed: () => void }> {
    const { account, ...change } = input;
    const entry = this.#entry({ ...change, callId: null, keyId: null });
    const batch = new BillingBatch();
    batch.append(entry);
    await new BillingStore(transaction).write(batch);
    return { entry, committed: () => account.change(input.amount) };
  }

  /**
   * At the start, before any call: what a process that died had set aside is given back, and what its callers had surely got is
   * charged. @returns how many calls there were.
   */
  async recover(): Promise<number> {
    const store = new BillingStore(this.#deps.db);
    let count = 0;
    for (;;) {
      const holds = await store.openHolds(RECOVER_CHUNK);
      if (holds.length === 0) return count;
      count += holds.length;
      const batch = new BillingBatch();
      for (const { callId, projectId, keyId, held, delivered } of holds) {
        const call = { callId, projectId, keyId };
        const cost = Math.min(held, delivered);
        this.#record(batch, { ...call, note: "The server stopped during this call." }, { held, cost, residue: 0 });
        this.#close(batch, call, cost);
      }
      await store.transaction((billing) => billing.write(batch));
    }
  }

  /** Writes down all that was settled until now. */
  async flush(): Promise<void> {
    await this.#written.flush();
  }

  async close(): Promise<void> {
    await this.#written.close();
  }

  /** Null where nobody will ask what the key has spent. */
  async #payingKey({ projectId, keyId, budget, prices }: PricedCall): Promise<KeyAccount | null> {
    if (keyId === null || (this.mode === "off" && budget === null && prices === null)) return null;
    return this.#keyAccount(projectId, keyId);
  }

  async #keyAccount(projectId: string, keyId: string): Promise<KeyAccount> {
    const account = await this.account(projectId);
    const known = account.key(keyId);
    if (known) return known;
    try {
      const spent = await new BillingStore(this.#deps.db).spending(keyId, windowsOf(this.#deps.clock.now()));
      return account.addKey(keyId, spent);
    } catch (cause) {
      throw isStoreAway(cause) ? cannotRecord(cause) : cause;
    }
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
        this.#written.add((batch) => this.#open(batch, call, { added: held, held, delivered: 0 }));
      },
      extended: (call, change) => {
        if (!prepaid) return;
        this.#load.held += change.added;
        this.#written.add((batch) => this.#open(batch, call, change));
      },
      settled: (call, change) => {
        if (!prepaid && change.cost === 0) return;
        if (prepaid) {
          this.#load.holds--;
          this.#load.held -= change.held;
        }
        this.#written.add((batch) => {
          if (prepaid) this.#record(batch, { ...call, note: "" }, change);
          this.#close(batch, call, change.cost - change.residue);
        });
      },
    };
  }

  #open(
    batch: BillingBatch,
    { callId, projectId, keyId }: Pick<BillableCall, "callId" | "projectId" | "keyId">,
    { added, held, delivered }: { readonly added: number; readonly held: number; readonly delivered: number },
  ): void {
    const call = { callId, projectId, keyId };
    if (added > 0) batch.append(this.#entry({ ...call, kind: "hold", amount: -added, note: "" }));
    batch.open({ ...call, held, delivered, openedAt: this.#deps.clock.now() });
  }

  /** What was held comes back, what the call cost goes. */
  #record(
    batch: BillingBatch,
    { callId, projectId, keyId, note }: Pick<LedgerEntry, "projectId" | "keyId" | "note"> & { readonly callId: string },
    { held, cost, residue }: { readonly held: number; readonly cost: number; readonly residue: number },
  ): void {
    const call = { callId, projectId, keyId, note };
    if (held > 0) batch.append(this.#entry({ ...call, kind: "release", amount: held }));
    if (cost > 0) batch.append(this.#entry({ ...call, kind: "settle", amount: -cost }));
    if (residue === 0) return;
    batch.append(this.#entry({ ...call, kind: "adjust", amount: residue, note: "Beyond the balance: written off." }));
  }

  #close(batch: BillingBatch, { callId, keyId }: Pick<BillableCall, "callId" | "keyId">, charged: number): void {
    batch.close(callId);
    if (keyId !== null && charged > 0) batch.spend(keyId, windowsOf(this.#deps.clock.now()), charged);
  }

  #entry(entry: Omit<LedgerEntry, "id" | "at">): LedgerEntry {
    const { clock, ids } = this.#deps;
    return { ...entry, id: ids.next("ledgerEntry"), at: clock.now() };
  }
}

function cannotRecord(cause?: unknown): DomainError {
  const message = "The balance cannot be checked just now. Try again shortly.";
  return new DomainError("unavailable", message, { retryAfterSeconds: 1, cause });
}
