import type { Clock } from "@fairlead/protocol/clock";
import type { Logger } from "pino";
import { isUniqueViolation } from "./errors.ts";

/**
 * Writes of hot paths, grouped: whatever gathers while one transaction runs is the next one (design §11). What is given here is
 * known to this process at once; a crash can lose the last few milliseconds of it, which the caller must be able to make good.
 */
export interface WriteBehindOptions<B> {
  readonly newBatch: () => B;
  readonly isEmpty: (batch: B) => boolean;
  /** One transaction. Rows carry ids of their own, so that a repeat after a lost answer is told by their uniqueness. */
  readonly write: (batch: B) => Promise<void>;
  readonly clock: Clock;
  readonly log: Logger;
  /** For the log. */
  readonly what: string;
}

/** Shorter than anybody waits for, long enough to gather a busy server's calls. */
const GATHER_MS = 10;
const RETRY_MS = 250;

export class WriteBehind<B> {
  readonly #options: WriteBehindOptions<B>;
  #gathering: B;
  #failed: B | null = null;
  #timer: NodeJS.Timeout | null = null;
  #running: Promise<void> | null = null;

  constructor(options: WriteBehindOptions<B>) {
    this.#options = options;
    this.#gathering = options.newBatch();
  }

  /** False while the store does not take what was written. */
  get isHealthy(): boolean {
    return this.#failed === null;
  }

  /** @param change adds rows to the batch. */
  add(change: (batch: B) => void): void {
    change(this.#gathering);
    this.#schedule(GATHER_MS);
  }

  /** Writes all that was given until now. @throws the store's error. */
  async flush(): Promise<void> {
    await this.#running;
    await this.#writeAll();
  }

  /** As `flush`, once and for all. */
  async close(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    await this.flush();
  }

  #schedule(ms: number): void {
    if (this.#timer !== null || this.#running !== null) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#running = this.#round();
    }, ms);
    this.#timer.unref();
  }

  async #round(): Promise<void> {
    try {
      await this.#writeAll();
      this.#running = null;
      if (!this.#options.isEmpty(this.#gathering)) this.#schedule(GATHER_MS);
    } catch (error) {
      this.#running = null;
      this.#options.log.error({ what: this.#options.what, err: error }, "the store does not take writes; trying again");
      this.#schedule(RETRY_MS);
    }
  }

  async #writeAll(): Promise<void> {
    if (this.#failed !== null) await this.#write(this.#failed);
    const batch = this.#gathering;
    if (this.#options.isEmpty(batch)) return;
    this.#gathering = this.#options.newBatch();
    await this.#write(batch);
  }

  async #write(batch: B): Promise<void> {
    this.#failed = batch;
    try {
      await this.#options.write(batch);
    } catch (error) {
      // A commit whose answer was lost: the rows are there.
      if (!isUniqueViolation(error)) throw error;
    }
    this.#failed = null;
  }
}
