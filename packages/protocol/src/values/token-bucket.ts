/** How many tokens a bucket holds, and how fast it refills. */
export interface BucketSize {
  readonly capacity: number;
  readonly perSecond: number;
}

/** Allows a burst up to its capacity, and its rate from then on. Pure: times are milliseconds of a clock that never goes back. */
export class TokenBucket {
  readonly #size: BucketSize;
  #tokens: number;
  #countedAt: number;

  constructor(size: BucketSize, now: number) {
    this.#size = size;
    this.#tokens = size.capacity;
    this.#countedAt = now;
  }

  /** Takes all of `amount` or nothing. */
  take(now: number, amount = 1): boolean {
    this.#refill(now);
    if (this.#tokens < amount) return false;
    this.#tokens -= amount;
    return true;
  }

  /** @returns milliseconds until `amount` can be taken; Infinity for more than the bucket holds. */
  msUntil(now: number, amount = 1): number {
    this.#refill(now);
    if (amount > this.#size.capacity) return Number.POSITIVE_INFINITY;
    return Math.ceil((Math.max(0, amount - this.#tokens) / this.#size.perSecond) * 1000);
  }

  #refill(now: number): void {
    const { capacity, perSecond } = this.#size;
    this.#tokens = Math.min(capacity, this.#tokens + ((now - this.#countedAt) / 1000) * perSecond);
    this.#countedAt = now;
  }
}
