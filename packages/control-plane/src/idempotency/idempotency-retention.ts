import type { Clock } from "@fairlead/protocol/clock";
import type { Retention } from "../retention.ts";
import type { IdempotencyStore } from "./idempotency-store.ts";

const EVERY_MS = 600_000;

/** @param records on the store's handle for long work. */
export function idempotencyRetention(records: IdempotencyStore, clock: Clock): Retention {
  return {
    what: "idempotency records",
    everyMs: EVERY_MS,
    removeSome: (limit) => records.deleteExpired(clock.now(), limit),
  };
}
