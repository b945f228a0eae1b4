import type { Clock } from "@fairlead/protocol/values/clock";
import type { Logger } from "pino";
import { WriteBehind } from "../../installation/db/write-behind.ts";
import type { KeyRecord } from "./key.ts";
import type { KeyStore, KeyUsed } from "./key-store.ts";

export interface KeyUseDeps {
  readonly keys: KeyStore;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Write interval for the last use of a key. */
const NOTED_MS = 60_000;

/** Records the last use of keys, written behind the calls. */
export class KeyUse {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #writes: WriteBehind<Map<string, KeyUsed>>;

  constructor({ keys, clock, log }: KeyUseDeps) {
    this.#clock = clock;
    this.#log = log;
    this.#writes = new WriteBehind({
      newBatch: () => new Map<string, KeyUsed>(),
      isEmpty: (batch) => batch.size === 0,
      write: (batch) => keys.setUsed(batch.values()),
      clock,
      log,
      what: "last use of keys",
    });
  }

  /** @param key as just read: at most once a second, which is precise enough for a minute. */
  note(key: KeyRecord, secretHash: string): void {
    const { id, projectId, previous } = key;
    const withPrevious = previous?.secretHash === secretHash;
    const lastUsedAt = withPrevious ? previous.lastUsedAt : key.lastUsedAt;
    const at = this.#clock.now();
    if (lastUsedAt !== null && at - lastUsedAt < NOTED_MS) return;
    this.#writes.add((batch) => batch.set(secretHash, { id, projectId, at, withPrevious }));
  }

  /** Writes what is left, if possible: losing a last use must not fail the shutdown. */
  async close(): Promise<void> {
    await this.#writes.close().catch((error: unknown) => {
      this.#log.warn({ err: error }, "the last use of some keys was not recorded");
    });
  }
}
