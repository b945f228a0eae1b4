/** A bell that remembers one ring: a change during the work on an earlier one is not lost, and many are answered once. */
export class Wake {
  #rung = false;
  #waiter: (() => void) | null = null;

  ring(): void {
    this.#rung = true;
    this.#waiter?.();
  }

  /** Resolves at the next ring (at once if one came meanwhile), at the time-out, or when the signal aborts. */
  async next(options: { readonly timeoutMs: number; readonly signal?: AbortSignal | undefined }): Promise<void> {
    const { timeoutMs, signal } = options;
    if (!this.#rung && !signal?.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#waiter = resolve;
      const timer = setTimeout(resolve, timeoutMs);
      signal?.addEventListener("abort", this.#ringOnAbort);
      await promise;
      signal?.removeEventListener("abort", this.#ringOnAbort);
      clearTimeout(timer);
      this.#waiter = null;
    }
    this.#rung = false;
  }

  readonly #ringOnAbort = (): void => this.ring();
}
