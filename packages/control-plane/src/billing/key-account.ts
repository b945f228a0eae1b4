import type { DomainError } from "@fairlead/protocol/errors";
import { judgeBudget, type KeyBudget, type KeySpending, type Need } from "./budget.ts";
import { MAX_NANO_DOLLARS } from "./money.ts";

/** What one key has spent in the windows that count now, and what its running calls hold. */
export class KeyAccount implements KeySpending {
  readonly #spent: Map<string, number>;
  #held = 0;

  constructor(spent: ReadonlyMap<string, number>) {
    this.#spent = new Map(spent);
  }

  /** Nano-dollars set aside for its calls that run. */
  get held(): number {
    return this.#held;
  }

  spent(window: string): number {
    return this.#spent.get(window) ?? 0;
  }

  judge(budget: KeyBudget, need: Need): DomainError | null {
    return judgeBudget(budget, this, need);
  }

  /** @param amount positive sets aside, negative gives back. */
  hold(amount: number): void {
    this.#held += amount;
  }

  /** @param windows those that count now; older ones are forgotten. @returns what is spent in each of them. */
  spend(amount: number, windows: readonly string[]): ReadonlyMap<string, number> {
    for (const known of this.#spent.keys()) if (!windows.includes(known)) this.#spent.delete(known);
    for (const window of windows) this.#spent.set(window, Math.min(this.spent(window) + amount, MAX_NANO_DOLLARS));
    return new Map(this.#spent);
  }
}
