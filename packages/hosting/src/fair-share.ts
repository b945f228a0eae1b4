/** What happened to a claim: beyond what is there at all, or beyond what one party may have of it. */
export type Claim = "granted" | "full" | "beyond_share";

/** What one party holds. */
export interface Holding {
  amount: number;
}

/**
 * Divides a fixed amount between parties: each may hold `ratio` times what is still free. One party alone gets its `share` of it all,
 * several get equal parts, and something is always left for the next one, however many there are.
 */
export class FairShare {
  readonly #max: number;
  readonly #ratio: number;
  #used = 0;

  /** @param share of everything that one party alone may hold; 1: parties are not told apart. */
  constructor(max: number, share: number) {
    this.#max = max;
    this.#ratio = share / (1 - share);
  }

  get used(): number {
    return this.#used;
  }

  /** @param holding null while the party is not known: then only what is there at all counts. */
  claim(amount: number, holding: Holding | null): Claim {
    const free = this.#max - this.#used;
    if (amount > free) return "full";
    if (holding !== null) {
      if (holding.amount + amount > this.#ratio * free) return "beyond_share";
      holding.amount += amount;
    }
    this.#used += amount;
    return "granted";
  }

  giveBack(amount: number, holding: Holding | null): void {
    this.#used -= amount;
    if (holding !== null) holding.amount -= amount;
  }
}
