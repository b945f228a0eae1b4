import { Distribution, REQUEST_SECONDS } from "../distribution.ts";
import type { CallOutcome } from "./inference-call.ts";
import type { FaultKind } from "./retry-rules.ts";

/** What the inference host counts: plain numbers, rendered when somebody asks. */
export class InferenceCounters {
  readonly calls = new Map<CallOutcome, number>();
  /** Seconds from a dispatch to the head of the upstream's answer. */
  readonly firstByte = new Distribution(REQUEST_SECONDS);
  /** From upstreams to callers. */
  relayedBytes = 0;
  /** Further attempts, by what the one before brought. */
  readonly retries = new Map<FaultKind, number>();

  ended(outcome: CallOutcome): void {
    this.calls.set(outcome, (this.calls.get(outcome) ?? 0) + 1);
  }

  retried(after: FaultKind): void {
    this.retries.set(after, (this.retries.get(after) ?? 0) + 1);
  }
}
