import type { KeptAnswer } from "./kept-answer.ts";

/** Which call it was. */
export interface AnsweredCall {
  readonly projectId: string;
  /** A project key's id, or a worker's. */
  readonly callerId: string;
  /** The caller's `Idempotency-Key`. */
  readonly key: string;
}

export interface RepeatableCall extends AnsweredCall {
  /** SHA-256 (hex) of everything that identifies the call. */
  readonly fingerprint: string;
}

/** The right to run a call under its key. Held in memory, so a crash releases it. */
export interface AnswerClaim {
  /** @param answer null if it is too long; retries are then rejected. @throws the store's error. */
  keep(answer: KeptAnswer | null): Promise<void>;
  /** Releases the key, whether the response was stored or not. */
  release(): void;
}

export type Repeat =
  | { readonly kept: KeptAnswer; readonly claim: null }
  | { readonly kept: null; readonly claim: AnswerClaim };

/** Answers calls once for an `Idempotency-Key`, and repeats of them alike. */
export interface KeptAnswers {
  /** @throws DomainError idempotency_mismatch, idempotency_in_progress, already_exists; unavailable when the store cannot be asked. */
  begin(call: RepeatableCall): Promise<Repeat>;
}
