import { type BackoffOptions, fullJitter } from "@fairlead/protocol/backoff";
import type { DomainError } from "@fairlead/protocol/errors";

/** What is done after an attempt that brought nothing, as long as nothing was sent to the caller (decisions/0020). Pure. */

/**
 * What an upstream has done with the request:
 * `not_reached`: nothing, it was never there. `busy`: nothing, it said so (429, 503). `failed`: it answered that it failed.
 * `broken`: it was sent the request, and broke off. `silent`: the same, and nothing was heard of it for as long as anybody waits.
 */
export type FaultKind = "not_reached" | "busy" | "failed" | "broken" | "silent";

export interface AttemptFault {
  readonly kind: FaultKind;
  /** What the caller is told if this was the last attempt. */
  readonly error: DomainError;
}

export interface RetryLimits {
  /** Of one call, the first included. */
  readonly maxAttempts: number;
  /** Between them, all together. */
  readonly maxRetryWaitMs: number;
}

const BACKOFF: BackoffOptions = { baseMs: 250, maxMs: 2000 };

/**
 * Whether the call may be sent to somebody at all.
 * @param acts whether the upstream may have done something lasting by now: answers that it stores, tools that it runs itself.
 */
export function mayAskAnother(kind: FaultKind, acts: boolean): boolean {
  if (kind === "silent") return false;
  return kind !== "broken" || !acts;
}

/** Whether it may be sent there again: only where it is known that nothing was begun, for a failure is likely to repeat itself. */
export function mayAskAgain(kind: FaultKind): boolean {
  return kind === "not_reached" || kind === "busy";
}

/** @param repeat from 0. @param random in [0, 1). @returns milliseconds. */
export function repeatDelay({ kind, error }: AttemptFault, repeat: number, random: number): number {
  // Only what the upstream itself said is waited for.
  const asked = kind === "busy" ? (error.retryAfterSeconds ?? 0) * 1000 : 0;
  return Math.max(asked, fullJitter(BACKOFF, repeat, random));
}
