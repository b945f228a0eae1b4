import { addSums, hourOf, sumsOf, type UsageRecord, type UsageSums } from "./usage.ts";

/** The sums of records that share an hour and all that they can be told apart by. */
export interface HourSums {
  /** One of them, for what they share. */
  readonly of: UsageRecord;
  readonly hour: number;
  readonly sums: UsageSums;
}

/** Records of calls that ended since the last write, and what the hours' sums grow by. */
export class UsageBatch {
  readonly records: UsageRecord[] = [];
  readonly #hours = new Map<string, HourSums>();

  add(record: UsageRecord): void {
    this.records.push(record);
    this.count(record);
  }

  /** Without the record itself. */
  count(record: UsageRecord): void {
    const { projectId, at, model, keyId, userId, agentId, upstream, outcome } = record;
    const hour = hourOf(at);
    const name = JSON.stringify([projectId, hour, model ?? "", keyId, userId, agentId, upstream, outcome]);
    this.#grow(name, { of: record, hour, sums: sumsOf(record) });
  }

  /** Takes the sums of another one; not its records. */
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
