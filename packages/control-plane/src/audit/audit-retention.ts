import type { Clock } from "@fairlead/protocol/clock";
import type { Retention } from "../retention.ts";
import type { AuditStore } from "./audit-store.ts";

const DAY_MS = 24 * 3_600_000;
const EVERY_MS = 3_600_000;

export interface AuditRetentionOptions {
  /** On the store's handle for long work. */
  readonly events: AuditStore;
  readonly days: number;
  readonly clock: Clock;
}

export function auditRetention({ events, days, clock }: AuditRetentionOptions): Retention {
  return {
    what: "audit events",
    everyMs: EVERY_MS,
    removeSome: (limit) => events.deleteBefore(clock.now() - days * DAY_MS, limit),
  };
}
