import type { ErrorCode } from "@fairlead/protocol/errors";
import { Distribution, REQUEST_SECONDS } from "../distribution.ts";

/** How a call ended: `rejected` by the engine, with its own words; an error code where we answered with one. */
export type CallOutcome = "ok" | "rejected" | "client_left" | ErrorCode;

/** What the inference host counts: plain numbers, rendered when somebody asks. */
export class InferenceCounters {
  readonly calls = new Map<CallOutcome, number>();
  /** Seconds from the call's dispatch to the head of the engine's answer. */
  readonly firstByte = new Distribution(REQUEST_SECONDS);
  /** From engines to callers. */
  relayedBytes = 0;

  ended(outcome: CallOutcome): void {
    this.calls.set(outcome, (this.calls.get(outcome) ?? 0) + 1);
  }
}
