import { DomainError } from "@fairlead/protocol/errors";
import { formatDollars, MAX_NANO_DOLLARS } from "./money.ts";

/**
 * A project's money as this process knows it: every hold is judged here, at once, and written behind (design §9). There is one
 * process, so what it knows is what there is.
 */
export class Account {
  /** The ledger's sum: what calls that run have set aside is out of it already. */
  #balance: number;
  #held = 0;
  #running = 0;
  /** Credits on their way into the store: nobody may spend them yet. */
  #incoming = 0;

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

  /** Why a call that holds `own` may not set aside this much more; null: it may. */
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
    const message = `${need}, and ${formatDollars(others)} is held by other calls that run. Try again when they have ended.`;
    return new DomainError("held_by_running_calls", message, { retryAfterSeconds: 1, money });
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

  /** For what calls have cost. */
  charge(amount: number): void {
    this.#balance -= amount;
  }

  /**
   * Before a change from outside is written: what is taken out can be spent by nobody any more.
   * @param amount positive adds, negative takes out.
   * @throws DomainError invalid_request for more than there is, or than a balance can hold.
   */
  beginChange(amount: number): void {
    if (this.#balance + amount < 0) throw impossible(`only ${formatDollars(this.#balance)} is left to take.`);
    if (this.#balance + this.#held + this.#incoming + amount > MAX_NANO_DOLLARS) {
      throw impossible(`a balance holds at most ${formatDollars(MAX_NANO_DOLLARS)}.`);
    }
    if (amount < 0) this.#balance += amount;
    else this.#incoming += amount;
  }

  /** @param written whether the change is in the store. */
  endChange(amount: number, written: boolean): void {
    const isCredit = amount >= 0;
    if (isCredit) this.#incoming -= amount;
    if (written === isCredit) this.#balance += Math.abs(amount);
  }
}

function impossible(message: string): DomainError {
  return new DomainError("invalid_request", `\`amountNanoDollars\`: ${message}`, { param: "amountNanoDollars" });
}
