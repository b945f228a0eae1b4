import type { Logger } from "pino";
import { isUniqueViolation } from "./errors.ts";

/**
 * Writes of hot paths, grouped: whatever gathers while one transaction runs is the next one (design §11). What is given here is
 * known to this process at once; a crash can lose the last few milliseconds of it, which the caller must be able to make good.
 */
export interface WriteBehindOptions<B> {
  readonly newBatch: () => B;
  readonly isEmpty: (batch: B) => boolean;
  /**
   * One transaction. A batch is repeated after a lost answer: each of its rows bears an id that is refused the second time, or
   * says the same when it is written twice.
   */
  readonly write: (batch: B) => Promise<void>;
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
  /** Given to the store, which has not said yet that it has it. Nothing later is written before it. */
  #unwritten: B | null = null;
  #isHealthy = true;
  #timer: NodeJS.Timeout | null = null;
  /** One at a time: a later batch must not overtake an earlier one. */
  #running: Promise<void> | null = null;
  #closed = false;

  constructor(options: WriteBehindOptions<B>) {
    this.#options = options;
    this.#gathering = options.newBatch();
  }

  /** False from a write that failed to the next one that does not. */
  get isHealthy(): boolean {
    return this.#isHealthy;
  }

  /** @param change adds rows to the batch. */
  add(change: (batch: B) => void): void {
    change(this.#gathering);
    this.#schedule(GATHER_MS);
  }

  /** Writes all that was given until now. @throws the store's error. */
  async flush(): Promise<void> {
    // What runs may have begun before the last of it was given.
    await this.#running?.catch(() => undefined);
    await this.#write();
  }

  /** As `flush`, once and for all. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    await this.flush();
  }

  #schedule(ms: number): void {
    if (this.#timer !== null || this.#closed) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      void this.#round();
    }, ms);
    this.#timer.unref();
  }

  async #round(): Promise<void> {
    try {
      await this.#write();
      if (!this.#options.isEmpty(this.#gathering)) this.#schedule(GATHER_MS);
    } catch {
      this.#schedule(RETRY_MS);
    }
  }

  #write(): Promise<void> {
    this.#running ??= this.#writeAll().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  async #writeAll(): Promise<void> {
    if (this.#unwritten !== null) await this.#writeBatch(this.#unwritten);
    const batch = this.#gathering;
    if (this.#options.isEmpty(batch)) return;
    this.#gathering = this.#options.newBatch();
    this.#unwritten = batch;
    await this.#writeBatch(batch);
  }

  async #writeBatch(batch: B): Promise<void> {
    const { write, log, what } = this.#options;
    try {
      await write(batch);
    } catch (error) {
      // A commit whose answer was lost: the rows are there.
      if (!isUniqueViolation(error)) {
        if (this.#isHealthy) log.error({ what, err: error }, "the store does not take writes; trying again and again");
        this.#isHealthy = false;
        throw error;
      }
    }
    this.#unwritten = null;
    if (!this.#isHealthy) log.info({ what }, "the store takes writes again");
    this.#isHealthy = true;
  }
}
