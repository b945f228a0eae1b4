import type { DomainError } from "@fairlead/protocol/errors";
import { type BackoffOptions, fullJitter } from "@fairlead/protocol/values/backoff";

/** What happens after a failed attempt while nothing has been sent to the client (decisions/0020). Pure. */

/**
 * What the upstream did with the request:
 * `not_reached`: never received it. `busy`: rejected it (429, 503). `failed`: returned an error.
 * `broken`: received it, then disconnected. `silent`: received it, then timed out.
 */
export type FaultKind = "not_reached" | "busy" | "failed" | "broken" | "silent";

export interface AttemptFault {
  readonly kind: FaultKind;
  /** The client's error if this was the last attempt. */
  readonly error: DomainError;
}

export interface RetryLimits {
  /** Per call, including the first. */
  readonly maxAttempts: number;
  /** Total of all delays of a call. */
  readonly maxRetryWaitMs: number;
}

const BACKOFF: BackoffOptions = { baseMs: 250, maxMs: 2000 };

/**
 * Whether the call may be sent to another upstream.
 * @param acts whether the upstream may have had lasting effects: stored responses, tools that it runs itself.
 */
export function mayAskAnother(kind: FaultKind, acts: boolean): boolean {
  if (kind === "silent") return false;
  return kind !== "broken" || !acts;
}

/** Whether the same upstream may be retried: only if it certainly did nothing, since a failure is likely to repeat. */
export function mayAskAgain(kind: FaultKind): boolean {
  return kind === "not_reached" || kind === "busy";
}

/** @param repeat from 0. @param random in [0, 1). @returns milliseconds. */
export function repeatDelay({ kind, error }: AttemptFault, repeat: number, random: number): number {
  // Only a delay that the upstream itself requested is waited for.
  const asked = kind === "busy" ? (error.retryAfterSeconds ?? 0) * 1000 : 0;
  return Math.max(asked, fullJitter(BACKOFF, repeat, random));
}
