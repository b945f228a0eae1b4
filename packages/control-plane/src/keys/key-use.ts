import type { Clock } from "@fairlead/protocol/clock";
import type { Logger } from "pino";
import { WriteBehind } from "../db/write-behind.ts";
import type { KeyRecord } from "./key.ts";
import type { KeyStore, KeyUsed } from "./key-store.ts";

export interface KeyUseDeps {
  readonly keys: KeyStore;
  readonly clock: Clock;
  readonly log: Logger;
}

/** So often a key's last use is written, however often it is used. */
const NOTED_MS = 60_000;

/** When keys were last used; written behind the calls. */
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
      log,
      what: "last use of keys",
    });
  }

  /** @param key as it was just read: once a second at most, which is often enough to see whether a minute has gone. */
  note(key: KeyRecord, secretHash: string): void {
    const { id, projectId, previous } = key;
    const withPrevious = previous?.secretHash === secretHash;
    const lastUsedAt = withPrevious ? previous.lastUsedAt : key.lastUsedAt;
    const at = this.#clock.now();
    if (lastUsedAt !== null && at - lastUsedAt < NOTED_MS) return;
    this.#writes.add((batch) => batch.set(secretHash, { id, projectId, at, withPrevious }));
  }

  /** Writes what is left, if the store takes it: a last use that is lost is not worth a failed stop. */
  async close(): Promise<void> {
    await this.#writes.close().catch((error: unknown) => {
      this.#log.warn({ err: error }, "the last use of some keys is lost");
    });
  }
}
