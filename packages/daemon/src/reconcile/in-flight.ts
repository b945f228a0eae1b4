/** Counts running requests per container, so that updates can wait for them. */
export class InFlight {
  readonly #counts = new Map<string, number>();

  /** @returns a function to call when the request ends. */
  begin(containerId: string): () => void {
    this.#counts.set(containerId, this.count(containerId) + 1);
    let open = true;
    return () => {
      if (!open) return;
      open = false;
      const rest = this.count(containerId) - 1;
      if (rest > 0) this.#counts.set(containerId, rest);
      else this.#counts.delete(containerId);
    };
  }

  /** Whether any request is running. */
  get isBusy(): boolean {
    return this.#counts.size > 0;
  }

  count(containerId: string): number {
    return this.#counts.get(containerId) ?? 0;
  }
}
