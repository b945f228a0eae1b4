import type { Clock } from "@fairlead/protocol/clock";
import type { Retention } from "../retention.ts";
import type { AgentEventStore } from "./agent-event-store.ts";

const DAY_MS = 24 * 3_600_000;
const EVERY_MS = 3_600_000;

export interface AgentEventRetentionOptions {
  /** On the store's handle for long work. */
  readonly events: AgentEventStore;
  readonly days: number;
  readonly clock: Clock;
}

export function agentEventRetention({ events, days, clock }: AgentEventRetentionOptions): Retention {
  return {
    what: "agent events",
    everyMs: EVERY_MS,
    removeSome: (limit) => events.deleteBefore(clock.now() - days * DAY_MS, limit),
  };
}
