import type { Clock } from "@fairlead/protocol/clock";
import type { Retention } from "../retention.ts";
import type { NodeEventStore } from "./node-event-store.ts";

const DAY_MS = 24 * 3_600_000;
const EVERY_MS = 3_600_000;

export interface NodeEventRetentionOptions {
  /** On the store's handle for long work. */
  readonly events: NodeEventStore;
  readonly days: number;
  readonly clock: Clock;
}

export function nodeEventRetention({ events, days, clock }: NodeEventRetentionOptions): Retention {
  return {
    what: "node events",
    everyMs: EVERY_MS,
    removeSome: (limit) => events.deleteBefore(clock.now() - days * DAY_MS, limit),
  };
}
