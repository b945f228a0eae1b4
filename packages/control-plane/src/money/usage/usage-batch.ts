import { addSums, hourOf, sumsOf, type UsageRecord, type UsageSums } from "./usage.ts";

/** Sums of records with the same hour and dimensions. */
export interface HourSums {
  /** One of the records, for the shared values. */
  readonly of: UsageRecord;
  readonly hour: number;
  readonly sums: UsageSums;
}

/** Records of calls that ended since the last write, and the increments of the hourly sums. */
export class UsageBatch {
  readonly records: UsageRecord[] = [];
  readonly #hours = new Map<string, HourSums>();

  add(record: UsageRecord): void {
    this.records.push(record);
    this.count(record);
  }

  /** Adds to the sums without keeping the record. */
  count(record: UsageRecord): void {
    const { projectId, at, model, keyId, userId, agentId, upstream, outcome } = record;
    const hour = hourOf(at);
    const name = JSON.stringify([projectId, hour, model ?? "", keyId, userId, agentId, upstream, outcome]);
    this.#grow(name, { of: record, hour, sums: sumsOf(record) });
  }

  /** Adds another batch's sums, not its records. */
  join(other: UsageBatch): void {
    for (const [name, sums] of other.#hours) this.#grow(name, sums);
  }

  hours(): readonly HourSums[] {
    return [...this.#hours.values()];
  }

  #grow(name: string, more: HourSums): void {
    const known = this.#hours.get(name);
    this.#hours.set(name, known === undefined ? more : { ...known, sums: addSums(known.sums, more.sums) });
  }
}
