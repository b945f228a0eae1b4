import type { Clock } from "@fairlead/protocol/clock";
import { DomainError } from "@fairlead/protocol/errors";
import type { SecretSealer } from "../auth/sealer.ts";
import type { AnsweredCall, AnswerStore } from "./answer-store.ts";
import { answerName, fromBytes, type KeptAnswer, toBytes } from "./kept-answer.ts";

/** How long a repeat is answered what the first call was (design §4). */
export const KEEP_MS = 24 * 3_600_000;
/** When a repeat may find the call ended. */
const RUNNING_RETRY_SECONDS = 2;

export interface AnswerServiceDeps {
  readonly answers: AnswerStore;
  /** The same on the handle whose statements hold nobody up: answers can be long. */
  readonly writes: AnswerStore;
  readonly sealer: SecretSealer;
  readonly clock: Clock;
}

export interface RepeatableCall extends AnsweredCall {
  /** SHA-256 (hex) of all that makes it this call. */
  readonly fingerprint: string;
}

/** The right to run a call under its key, in this process's memory: a crash gives it back. */
export interface AnswerClaim {
  /** @param answer null for one that is too long: a repeat is refused then. @throws the store's error. */
  keep(answer: KeptAnswer | null): Promise<void>;
  /** The call is over, kept or not. */
  release(): void;
}

export type Repeat =
  | { readonly kept: KeptAnswer; readonly claim: null }
  | { readonly kept: null; readonly claim: AnswerClaim };

/** Answers calls once for an `Idempotency-Key`, and repeats of them alike (design §4). */
export class AnswerService {
  readonly #deps: AnswerServiceDeps;
  /** By name: what runs just now, as its fingerprint. */
  readonly #running = new Map<string, string>();

  constructor(deps: AnswerServiceDeps) {
    this.#deps = deps;
  }

  /** @throws DomainError idempotency_mismatch, idempotency_in_progress, already_exists; unavailable when the store cannot be asked. */
  async begin(call: RepeatableCall): Promise<Repeat> {
    const name = answerName(call);
    const running = this.#running.get(name);
    if (running !== undefined) throw running === call.fingerprint ? inProgress() : mismatch();
    // Before the store is asked: of two that come at once only one runs.
    this.#running.set(name, call.fingerprint);
    try {
      const kept = await this.#find(call, name);
      if (kept === null) return { kept, claim: this.#claim(call, name) };
      this.#running.delete(name);
      return { kept, claim: null };
    } catch (error) {
      this.#running.delete(name);
      throw error;
    }
  }

  async #find(call: RepeatableCall, name: string): Promise<KeptAnswer | null> {
    const { answers, clock, sealer } = this.#deps;
    const record = await answers.find(call, clock.now());
    if (record === null) return null;
    if (record.fingerprint !== call.fingerprint) throw mismatch();
    if (record.sealed === null) throw tooLong();
    return fromBytes(await sealer.open(record.sealed, name));
  }

  #claim(call: RepeatableCall, name: string): AnswerClaim {
    const { writes, clock, sealer } = this.#deps;
    return {
      keep: async (answer) => {
        const sealed = answer === null ? null : await sealer.seal(toBytes(answer), name);
        await writes.put(call, { fingerprint: call.fingerprint, sealed, expiresAt: clock.now() + KEEP_MS });
      },
      release: () => this.#running.delete(name),
    };
  }
}

const param = "Idempotency-Key";

function inProgress(): DomainError {
  return new DomainError(
    "idempotency_in_progress",
    "The call with this `Idempotency-Key` still runs; a repeat is answered what it was, once it has ended.",
    { param, retryAfterSeconds: RUNNING_RETRY_SECONDS },
  );
}

function mismatch(): DomainError {
  return new DomainError(
    "idempotency_mismatch",
    "This `Idempotency-Key` was used with another call. Use a new key for a new call.",
    { param },
  );
}

function tooLong(): DomainError {
  return new DomainError(
    "already_exists",
    "This call was made before, and its answer was too long to be kept. Use a new `Idempotency-Key` to make it anew.",
    { param },
  );
}
