import type { DomainError } from "@fairlead/protocol/errors";
import { MAX_NANO_DOLLARS } from "@fairlead/protocol/values/money";
import { type Budget, judgeBudget, type Need, type Spender, type Spending, spenderOf } from "./budget.ts";

/** One key's or agent's spending in the current windows, and the holds of its running calls. */
export class SpenderAccount implements Spending {
  readonly spender: Spender;
  readonly #spent: Map<string, number>;
  #held = 0;

  /** @param id of the key or agent. */
  constructor(id: string, spent: ReadonlyMap<string, number>) {
    this.spender = spenderOf(id);
    this.#spent = new Map(spent);
  }

  /** Nano-dollars held for its running calls. */
  get held(): number {
    return this.#held;
  }

  spent(window: string): number {
    return this.#spent.get(window) ?? 0;
  }

  judge(budget: Budget, need: Need): DomainError | null {
    return judgeBudget(budget, this, need);
  }

  /** @param amount positive reserves, negative releases. */
  hold(amount: number): void {
    this.#held += amount;
  }

  /** @param windows the current ones; older ones are dropped. */
  spend(amount: number, windows: readonly string[]): void {
    for (const known of this.#spent.keys()) if (!windows.includes(known)) this.#spent.delete(known);
    for (const window of windows) this.#spent.set(window, Math.min(this.spent(window) + amount, MAX_NANO_DOLLARS));
  }
}
