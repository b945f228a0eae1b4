import type { Clock } from "@fairlead/protocol/clock";

export interface RecentCallsOptions {
  readonly clock: Clock;
  /** For how long a call counts. */
  readonly ms: number;
  readonly mostEntries: number;
}

/**
 * What became of calls a moment ago, for their repeats: clients send again by themselves what was refused or cut off, and may
 * have seen nothing of it. In memory and bounded: a miss costs a question that stands twice.
 */
export class RecentCalls<T> {
  readonly #options: RecentCallsOptions;
  /** By call, the oldest first. */
  readonly #entries = new Map<string, { readonly value: T; readonly until: number }>();

  constructor(options: RecentCallsOptions) {
    this.#options = options;
  }

  remember(call: string, value: T): void {
    const { clock, ms, mostEntries } = this.#options;
    this.#entries.delete(call);
    this.#entries.set(call, { value, until: clock.monotonic() + ms });
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= mostEntries) break;
      this.#entries.delete(oldest);
    }
  }

  find(call: string): T | null {
    const entry = this.#entries.get(call);
    return entry !== undefined && entry.until > this.#options.clock.monotonic() ? entry.value : null;
  }

  forget(call: string): void {
    this.#entries.delete(call);
  }
}
