/** Where a call's time goes. All in monotonic milliseconds. */
export class CallTimes {
  readonly begunAt: number;
  readonly #now: () => number;
  /** Not ours: waiting for the caller's body, and for upstreams. */
  #waitedMs: number;
  #waitingSince: number | null = null;

  constructor(options: { readonly begunAt: number; readonly uploadMs: number; readonly now: () => number }) {
    this.begunAt = options.begunAt;
    this.#waitedMs = options.uploadMs;
    this.#now = options.now;
  }

  /** An upstream has the request now, or will have it after a wait. */
  asked(): void {
    this.answered();
    this.#waitingSince = this.#now();
  }

  /** It answered, or failed. @returns how long it took. */
  answered(): number {
    if (this.#waitingSince === null) return 0;
    const waited = this.#now() - this.#waitingSince;
    this.#waitingSince = null;
    this.#waitedMs += waited;
    return waited;
  }

  /** What the call has cost so far beside waiting: `x-fairlead-overhead-ms`. */
  overheadMs(): number {
    return Math.max(0, this.#now() - this.begunAt - this.#waitedMs);
  }
}
