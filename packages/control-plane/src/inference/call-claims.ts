import type { DomainError } from "@fairlead/protocol/errors";
import type { Prices } from "../billing/prices.ts";
import type { Permit } from "../limits/permit.ts";
import type { CallHold } from "./call-money.ts";
import type { TokenUsage } from "./token-usage.ts";

/** What a call has taken of its caller's and project's limits and money, given back or settled in one place. */
export class CallClaims {
  readonly #permit: Permit;
  readonly #hold: CallHold;

  constructor(permit: Permit, hold: CallHold) {
    this.#permit = permit;
    this.#hold = hold;
  }

  /** As more is generated. @returns why no more may be, or null. */
  cover(outputTokens: number): DomainError | null {
    this.#permit.generated(outputTokens);
    return this.#hold.cover(outputTokens);
  }

  /**
   * The end, on whatever path.
   * @param usage null where nothing was generated. @param prices of the place that answered.
   * @returns what was charged, in nano-dollars.
   */
  end(usage: TokenUsage | null, prices: Prices | null): number {
    this.#permit.end(usage === null ? null : usage.inputTokens + usage.outputTokens);
    return this.#hold.settle(usage, prices);
  }
}
