import { answerName, fromBytes, type KeptAnswer, toBytes } from "@fairlead/inference/ports/kept-answer";
import type { AnswerClaim, KeptAnswers, Repeat, RepeatableCall } from "@fairlead/inference/ports/kept-answers";
import { DomainError } from "@fairlead/protocol/errors";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { SealedColumn } from "../auth/sealing/sealed-column.ts";
import type { SecretSealer } from "../auth/sealing/sealer.ts";
import type { AnswerStore } from "./answer-store.ts";

/** How long a retry returns the first response. */
export const ANSWER_KEEP_MS = 24 * 3_600_000;
/** When a repeat may find the call ended. */
const RUNNING_RETRY_SECONDS = 2;

export interface AnswerServiceDeps {
  readonly answers: AnswerStore;
  /** Uses the long-work handle, because responses can be long. */
  readonly writes: AnswerStore;
  readonly sealer: SecretSealer;
  readonly clock: Clock;
}

/** Runs a call once per `Idempotency-Key` and returns the same response to retries. */
export class AnswerService implements KeptAnswers {
  readonly #deps: AnswerServiceDeps;
  /** Running calls by name, with their fingerprints. */
  readonly #running = new Map<string, string>();

  constructor(deps: AnswerServiceDeps) {
    this.#deps = deps;
  }

  /** @throws DomainError idempotency_mismatch, idempotency_in_progress, already_exists; unavailable if the store cannot be read. */
  async begin(call: RepeatableCall): Promise<Repeat> {
    const name = answerName(call);
    const running = this.#running.get(name);
    if (running !== undefined) throw running === call.fingerprint ? inProgress() : mismatch();
    // Claimed before reading the store, so that only one of two concurrent calls runs.
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
        await writes.put(call, { fingerprint: call.fingerprint, sealed, expiresAt: clock.now() + ANSWER_KEEP_MS });
      },
      release: () => this.#running.delete(name),
    };
  }
}

const param = "Idempotency-Key";

function inProgress(): DomainError {
  return new DomainError(
    "idempotency_in_progress",
    "The call with this `Idempotency-Key` is still running. When it has finished, a retry returns its response.",
    { param, retryAfterSeconds: RUNNING_RETRY_SECONDS },
  );
}

function mismatch(): DomainError {
  return new DomainError(
    "idempotency_mismatch",
    "This `Idempotency-Key` was used with a different call. Use a new key for a new call.",
    { param },
  );
}

function tooLong(): DomainError {
  return new DomainError(
    "already_exists",
    "This call was already made, but its response was too long to store. Use a new `Idempotency-Key` to make the call again.",
    { param },
  );
}

/** What the master key seals in this room. */
export const SEALED_ANSWERS: readonly SealedColumn[] = [
  {
    table: "kept_answer",
    column: "sealed",
    key: ["project_id", "caller_id", "key"],
    also: [],
    contextOf: ({ project_id: projectId = "", caller_id: callerId = "", key = "" }) =>
      answerName({ projectId, callerId, key }),
  },
];
