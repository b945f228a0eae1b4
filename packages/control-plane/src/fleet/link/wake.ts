/** A signal that remembers one notification: a change during processing is not lost, and several are handled together. */
export class Wake {
  #rung = false;
  #waiter: (() => void) | null = null;

  ring(): void {
    this.#rung = true;
    this.#waiter?.();
  }

  /** Resolves on the next notification (immediately if one is pending), at the timeout, or when the signal aborts. */
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
