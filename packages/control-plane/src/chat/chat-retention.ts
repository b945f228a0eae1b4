import type { Clock } from "@fairlead/protocol/clock";
import type { Retention } from "../retention.ts";
import type { SessionRemovalService } from "./session-removal-service.ts";

const DAY_MS = 24 * 3_600_000;
const EVERY_MS = 600_000;

export interface ChatRetentionOptions {
  readonly removal: SessionRemovalService;
  /** Undefined: sessions are kept until somebody deletes them. */
  readonly days: number | undefined;
  readonly clock: Clock;
}

export function chatRetentions({ removal, days, clock }: ChatRetentionOptions): readonly Retention[] {
  return [
    {
      what: "chat sessions",
      everyMs: EVERY_MS,
      // Those whose deletion broke off go in any case.
      removeSome: (limit) =>
        days === undefined ? removal.removeMarked(limit) : removal.removeQuiet(clock.now() - days * DAY_MS, limit),
    },
    {
      what: "answers of chat turns kept for repeats",
      everyMs: EVERY_MS,
      removeSome: (limit) => removal.forgetAnswers(limit),
    },
  ];
}
