import type { Clock } from "@fairlead/protocol/clock";
import type { Retention } from "../retention.ts";
import type { OneTimeLinkStore } from "./one-time-link-store.ts";

const EVERY_MS = 3_600_000;
/** Who let whom in stands in the audit log; a link that ended is of no use to anybody. */
const KEEP_MS = 7 * 24 * 3_600_000;

/** @param links on the store's handle for long work. */
export function oneTimeLinkRetention(links: OneTimeLinkStore, clock: Clock): Retention {
  return {
    what: "one-time links",
    everyMs: EVERY_MS,
    removeSome: (limit) => links.deleteEnded(clock.now() - KEEP_MS, limit),
  };
}
