import type { DomainError } from "@fairlead/protocol/errors";
import { type Budget, judgeBudget, type Need, type Spender, type Spending, spenderOf } from "./budget.ts";
import { MAX_NANO_DOLLARS } from "./money.ts";

/** What one key or agent has spent in the windows that count now, and what its running calls hold. */
export class SpenderAccount implements Spending {
  readonly spender: Spender;
  readonly #spent: Map<string, number>;
  #held = 0;

  /** @param id of the key or the agent. */
  constructor(id: string, spent: ReadonlyMap<string, number>) {
    this.spender = spenderOf(id);
    this.#spent = new Map(spent);
  }

  /** Nano-dollars set aside for its calls that run. */
  get held(): number {
    return this.#held;
  }

  spent(window: string): number {
    return this.#spent.get(window) ?? 0;
  }

  judge(budget: Budget, need: Need): DomainError | null {
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
