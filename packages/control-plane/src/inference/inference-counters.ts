import { Distribution, REQUEST_SECONDS } from "../distribution.ts";
import type { CallOutcome } from "./inference-call.ts";

/** What the inference host counts: plain numbers, rendered when somebody asks. */
export class InferenceCounters {
  readonly calls = new Map<CallOutcome, number>();
  /** Seconds from a dispatch to the head of the upstream's answer. */
  readonly firstByte = new Distribution(REQUEST_SECONDS);
  /** From upstreams to callers. */
  relayedBytes = 0;

  ended(outcome: CallOutcome): void {
    this.calls.set(outcome, (this.calls.get(outcome) ?? 0) + 1);
  }
}
