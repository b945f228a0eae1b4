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
    const { projectId, at, model, keyId, userId, workerId, upstream, outcome } = record;
    const hour = hourOf(at);
    const name = JSON.stringify([projectId, hour, model ?? "", keyId, userId, workerId, upstream, outcome]);
    const known = this.#hours.get(name);
    const sums = sumsOf(record);
    this.#hours.set(name, { of: record, hour, sums: known === undefined ? sums : addSums(known.sums, sums) });
  }

  hours(): readonly HourSums[] {
    return [...this.#hours.values()];
  }
}
