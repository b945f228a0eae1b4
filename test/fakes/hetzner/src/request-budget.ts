const PER_HOUR = 3600;

export interface BudgetHeaders {
  readonly "ratelimit-limit": string;
  readonly "ratelimit-remaining": string;
  /** Unix seconds at which all of it is there again. */
  readonly "ratelimit-reset": string;
}

/** A project's calls: one comes back each second, and all of them may be spent at once. */
export class RequestBudget {
  readonly #limit: number;
  readonly #now: () => number;
  #left: number;
  #at: number;

  /** @param now Unix milliseconds. */
  constructor(now: () => number, limit = PER_HOUR) {
    this.#now = now;
    this.#limit = limit;
    this.#left = limit;
    this.#at = now();
  }

  /** @returns whether there was one left. */
  spend(): boolean {
    this.#earn();
    if (this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }

  exhaust(): void {
    this.#earn();
    this.#left = 0;
  }

  /** As after an hour without a call. */
  refill(): void {
    this.#left = this.#limit;
  }

  get headers(): BudgetHeaders {
    this.#earn();
    const missing = Math.ceil((this.#limit - this.#left) * (PER_HOUR / this.#limit));
    return {
      "ratelimit-limit": String(this.#limit),
      "ratelimit-remaining": String(Math.floor(this.#left)),
      "ratelimit-reset": String(Math.ceil(this.#now() / 1000) + missing),
    };
  }

  #earn(): void {
    const now = this.#now();
    this.#left = Math.min(this.#limit, this.#left + ((now - this.#at) / 1000) * (this.#limit / PER_HOUR));
    this.#at = now;
  }
}
