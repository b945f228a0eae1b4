import { DomainError } from "@fairlead/protocol/errors";
import { judgeBudget, type KeyBudget, type KeySpending } from "./budget.ts";
import { formatDollars } from "./money.ts";

/**
 * A project's money as this process knows it: every hold is judged here, at once, and written behind (design §9). There is one
 * process, so what it knows is what there is.
 */
export class Account {
  /** The ledger's sum: what calls that run have set aside is out of it already. */
  #balance: number;
  #held = 0;
  #running = 0;
  readonly #keys = new Map<string, KeyAccount>();

  /** @param balance nano-dollars. */
  constructor(balance: number) {
    this.#balance = balance;
  }

  /** Nano-dollars that a new call could set aside. */
  get balance(): number {
    return this.#balance;
  }

  /** Nano-dollars set aside for calls that run. */
  get held(): number {
    return this.#held;
  }

  get running(): number {
    return this.#running;
  }

  /** @returns null for a key whose spending has not been read yet. */
  key(keyId: string): KeyAccount | null {
    return this.#keys.get(keyId) ?? null;
  }

  addKey(keyId: string, spent: ReadonlyMap<string, number>): KeyAccount {
    const known = this.#keys.get(keyId);
    if (known) return known;
    const key = new KeyAccount(spent);
    this.#keys.set(keyId, key);
    return key;
  }

  /** Why a call that holds `own` may not set aside this much more; null: it may. */
  judge(needed: number, own: number): DomainError | null {
    if (needed <= this.#balance) return null;
    const need = `This call needs up to ${formatDollars(needed)}; the project has ${formatDollars(this.#balance)} left`;
    const others = this.#held - own;
    if (needed > this.#balance + others) {
      return new DomainError("insufficient_balance", `${need}. An administrator can add credits; it does not reset.`);
    }
    const held = `${formatDollars(others)} is held by other calls that run`;
    return new DomainError("held_by_running_calls", `${need}, and ${held}. Try again when they have ended.`, {
      retryAfterSeconds: 1,
    });
  }

  begin(): void {
    this.#running++;
  }

  end(): void {
    this.#running--;
  }

  /** @param amount positive sets aside, negative gives back. */
  hold(amount: number): void {
    this.#balance -= amount;
    this.#held += amount;
  }

  /** @param amount positive adds, negative takes. */
  change(amount: number): void {
    this.#balance += amount;
  }
}

/** What one key has spent in the windows that count now, and what its running calls hold. */
export class KeyAccount implements KeySpending {
  readonly #spent: Map<string, number>;
  held = 0;

  constructor(spent: ReadonlyMap<string, number>) {
    this.#spent = new Map(spent);
  }

  spent(window: string): number {
    return this.#spent.get(window) ?? 0;
  }

  judge(budget: KeyBudget, call: { readonly needed: number; readonly now: number }): DomainError | null {
    return judgeBudget(budget, this, call);
  }

  /** @param windows those that count now; older ones are forgotten. */
  spend(amount: number, windows: readonly string[]): void {
    for (const known of this.#spent.keys()) if (!windows.includes(known)) this.#spent.delete(known);
    for (const window of windows) this.#spent.set(window, this.spent(window) + amount);
  }
}
