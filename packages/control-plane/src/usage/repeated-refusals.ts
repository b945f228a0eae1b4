import type { UsageRecord } from "./usage.ts";
import { UsageBatch } from "./usage-batch.ts";

const MINUTE_MS = 60_000;
/** Names that are known of a minute; beyond them refusals count in the sums alone. */
const MOST_NAMES = 10_000;

/**
 * Refusals before any upstream was asked, of which a program that does not listen can make thousands in a second: the first of its
 * caller and code in a minute leaves a record, all of them count in the sums of their hours.
 */
export class RepeatedRefusals {
  #minute = -1;
  readonly #names = new Set<string>();
  #counted = new UsageBatch();
  #last: UsageRecord | null = null;

  /** Whether it leaves a record. Asked once for each. */
  isFirst({ at, projectId, keyId, userId, agentId, outcome }: UsageRecord): boolean {
    const minute = Math.floor(at / MINUTE_MS);
    if (minute !== this.#minute) this.#names.clear();
    this.#minute = minute;
    const name = JSON.stringify([projectId, keyId, userId, agentId, outcome]);
    if (this.#names.has(name) || this.#names.size >= MOST_NAMES) return false;
    this.#names.add(name);
    return true;
  }

  /** @param record one that leaves none. */
  count(record: UsageRecord): void {
    this.#counted.count(record);
    this.#last = record;
  }

  get isEmpty(): boolean {
    return this.#last === null;
  }

  /** Hands over what was counted, to a batch with a record: by its id a batch is refused that is written twice. */
  moveTo(batch: UsageBatch): void {
    if (this.#last === null) return;
    if (batch.records.length === 0) batch.records.push(this.#last);
    batch.join(this.#counted);
    this.#counted = new UsageBatch();
    this.#last = null;
  }
}
