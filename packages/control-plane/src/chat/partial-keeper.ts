/** Stores what there is of a running answer, now and then, so that a crash costs seconds of it (design §7). */
export class PartialKeeper {
  readonly #everyMs: number;
  readonly #keep: () => Promise<void>;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  #stopped = false;

  /** @param keep must not reject. */
  constructor(everyMs: number, keep: () => Promise<void>) {
    this.#everyMs = everyMs;
    this.#keep = keep;
  }

  /** There is more. */
  touch(): void {
    if (this.#stopped || this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#writing = this.#keep().finally(() => {
        this.#timer = undefined;
      });
    }, this.#everyMs);
  }

  /** Resolves when nothing is written any more. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#writing;
  }
}
