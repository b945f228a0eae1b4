import { isPrimaryKeyViolation } from "@fairlead/hosting/errors/store-errors";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { Logger } from "pino";

/**
 * Groups the writes of hot paths: changes that arrive during one transaction form the next one. A crash can lose the last few milliseconds,
 * which the caller must be able to recover.
 */
export interface WriteBehindOptions<B> {
  readonly newBatch: () => B;
  readonly isEmpty: (batch: B) => boolean;
  /** One transaction. A batch may be repeated after a lost response, so its rows must be idempotent. */
  readonly write: (batch: B) => Promise<void>;
  readonly clock: Pick<Clock, "monotonic">;
  readonly log: Logger;
  /** For the log. */
  readonly what: string;
}

/** Short enough not to be noticed, long enough to group the calls of a busy server. */
const GATHER_MS = 10;
const RETRY_MS = 250;
/** A store that accepts nothing for this long may hang. */
const MAX_AGE_MS = 2000;

export class WriteBehind<B> {
  readonly #options: WriteBehindOptions<B>;
  #gathering: B;
  /** Sent to the store and not yet confirmed. Later changes wait for it. */
  #unwritten: B | null = null;
  /** When the oldest change of each arrived; null for none. */
  #gatheringSince: number | null = null;
  #unwrittenSince: number | null = null;
  #isHealthy = true;
  #timer: NodeJS.Timeout | null = null;
  /** One at a time, so that batches stay in order. */
  #running: Promise<void> | null = null;
  #closed = false;

  constructor(options: WriteBehindOptions<B>) {
    this.#options = options;
    this.#gathering = options.newBatch();
  }

  /** False after a failed write until the next successful one, and while a change has waited for more than two seconds. */
  get isHealthy(): boolean {
    const since = this.#unwrittenSince ?? this.#gatheringSince;
    return this.#isHealthy && (since === null || this.#options.clock.monotonic() - since <= MAX_AGE_MS);
  }

  /** @param change adds rows to the batch. */
  add(change: (batch: B) => void): void {
    change(this.#gathering);
    this.#gatheringSince ??= this.#options.clock.monotonic();
    this.#schedule(GATHER_MS);
  }

  /** Writes everything given so far. @throws the store's error. */
  async flush(): Promise<void> {
    // The running batch may have started before the last change was added.
    await this.#running?.catch(() => undefined);
    await this.#write();
  }

  /** Like `flush`, and rejects later changes. */
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
    this.#unwrittenSince = this.#gatheringSince;
    this.#gatheringSince = null;
    await this.#writeBatch(batch);
  }

  async #writeBatch(batch: B): Promise<void> {
    const { write, log, what } = this.#options;
    try {
      await write(batch);
    } catch (error) {
      // A commit with a lost response: the rows are there.
      if (!isPrimaryKeyViolation(error)) {
        if (this.#isHealthy) log.error({ what, err: error }, "the store rejects writes; retrying");
        this.#isHealthy = false;
        throw error;
      }
    }
    this.#unwritten = null;
    this.#unwrittenSince = null;
    if (!this.#isHealthy) log.info({ what }, "the store accepts writes again");
    this.#isHealthy = true;
  }
}
