import type { Clock } from "@fairlead/protocol/clock";
import type { Retention } from "../retention.ts";
import type { NodeEventStore } from "./node-event-store.ts";

const KEEP_MS = 90 * 24 * 3_600_000;
const EVERY_MS = 3_600_000;

/** Node events are kept for 90 days. @param events on the store's handle for long work. */
export function nodeEventRetention(events: NodeEventStore, clock: Clock): Retention {
  return {
    what: "node events",
    everyMs: EVERY_MS,
    removeSome: (limit) => events.deleteBefore(clock.now() - KEEP_MS, limit),
  };
}
