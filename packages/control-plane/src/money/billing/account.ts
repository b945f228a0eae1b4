import { DomainError } from "@fairlead/protocol/errors";
import { formatDollars, MAX_NANO_DOLLARS } from "@fairlead/protocol/values/money";

/**
 * A project's balance in this process, which judges all holds in memory and writes them behind. There is only one process, so it is authoritative.
 */
export class Account {
  /** The ledger's sum, less the holds of running calls. */
  #balance: number;
  #held = 0;
  #running = 0;
  /** Credits not yet written, which cannot be spent. */
  #incoming = 0;

  /** @param balance nano-dollars. */
  constructor(balance: number) {
    this.#balance = balance;
  }

  /** Nano-dollars available to a new call. */
  get balance(): number {
    return this.#balance;
  }

  /** Nano-dollars reserved by running calls. */
  get held(): number {
    return this.#held;
  }

  get running(): number {
    return this.#running;
  }

  /** @returns why a call that already holds `own` may not reserve this much more, or null. */
  judge(needed: number, own: number): DomainError | null {
    if (needed <= this.#balance) return null;
    const left = this.#balance;
    const others = this.#held - own;
    const more = own > 0 ? " more" : "";
    const need = `This call needs up to ${formatDollars(needed)}${more}; the project has ${formatDollars(left)} left`;
    const money = { neededNanoDollars: needed, leftNanoDollars: left, heldNanoDollars: others, resetsAt: null };
    if (needed > left + others) {
      const message = `${need}. An administrator can add credits; it does not reset.`;
      return new DomainError("insufficient_balance", message, { money });
    }
    const message = `${need}, and other calls in progress have reserved ${formatDollars(others)}. Retry when they have finished.`;
    return new DomainError("held_by_running_calls", message, { retryAfterSeconds: 1, money });
  }

  begin(): void {
    this.#running++;
  }

  end(): void {
    this.#running--;
  }

  /** @param amount positive reserves, negative releases. */
  hold(amount: number): void {
    this.#balance -= amount;
    this.#held += amount;
  }

  /** Charges the cost of calls. */
  charge(amount: number): void {
    this.#balance -= amount;
  }

  /**
   * Called before a manual change is written: a withdrawn amount can no longer be spent.
   * @param amount positive adds, negative withdraws.
   * @throws DomainError invalid_request if the balance would be negative or too large.
   */
  beginChange(amount: number): void {
    if (this.#balance + amount < 0) throw impossible(`only ${formatDollars(this.#balance)} can be removed.`);
    if (this.#balance + this.#held + this.#incoming + amount > MAX_NANO_DOLLARS) {
      throw impossible(`a balance can be at most ${formatDollars(MAX_NANO_DOLLARS)}.`);
    }
    if (amount < 0) this.#balance += amount;
    else this.#incoming += amount;
  }

  /** @param written whether the change was stored. */
  endChange(amount: number, written: boolean): void {
    const isCredit = amount >= 0;
    if (isCredit) this.#incoming -= amount;
    if (written === isCredit) this.#balance += Math.abs(amount);
  }
}

function impossible(message: string): DomainError {
  return new DomainError("invalid_request", `\`amountNanoDollars\`: ${message}`, { param: "amountNanoDollars" });
}
