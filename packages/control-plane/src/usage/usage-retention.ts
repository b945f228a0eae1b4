import type { Clock } from "@fairlead/protocol/clock";
import type { Retention } from "../retention.ts";
import { DAY_MS } from "./usage.ts";
import type { UsageStore } from "./usage-store.ts";

const EVERY_MS = 3_600_000;

export interface UsageRetentionOptions {
  /** On the store's handle for long work. */
  readonly usage: UsageStore;
  readonly days: number;
  /** Of the hours' sums. */
  readonly sumsDays: number;
  readonly clock: Clock;
}

export function usageRetentions({ usage, days, sumsDays, clock }: UsageRetentionOptions): readonly Retention[] {
  return [
    {
      what: "usage records",
      everyMs: EVERY_MS,
      removeSome: (limit) => usage.deleteRecordsBefore(clock.now() - days * DAY_MS, limit),
    },
    {
      what: "usage sums",
      everyMs: EVERY_MS,
      removeSome: (limit) => usage.deleteHoursBefore(clock.now() - sumsDays * DAY_MS, limit),
    },
  ];
}
