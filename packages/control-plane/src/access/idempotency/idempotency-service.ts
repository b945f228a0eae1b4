import { createHash } from "node:crypto";
import { DomainError } from "@fairlead/protocol/errors";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { Kysely } from "kysely";
import type { Database } from "../../installation/db/tables/schema.ts";
import { type CallName, type CallRecord, IdempotencyStore } from "./idempotency-store.ts";
import { always, type Once } from "./once.ts";

/** How long a retry returns the first response. */
export const IDEMPOTENCY_KEEP_MS = 24 * 3_600_000;

export interface CreateCall {
  /** The header `Idempotency-Key`. */
  readonly key: string | undefined;
  readonly userId: string;
  /** Null: the call names no project. */
  readonly projectId: string | null;
  /** `POST /v1/nodes` */
  readonly route: string;
  /** As parsed. */
  readonly body: unknown;
}

/** How to create the resource, and the response to return. */
export interface Creation<T, A> {
  readonly make: (once: Once<T>) => Promise<T>;
  readonly answer: (made: T) => A;
  readonly idOf: (made: T) => string;
  /** The response contains a secret, which is never stored: retries are rejected. */
  readonly secret?: boolean;
  /** Permission check for a `make` that calls an external service before writing: a retry returns right after it, without the external call. */
  readonly authorize?: () => Promise<void>;
}

export interface Created<A> {
  readonly answer: A;
  /** Stored by an earlier call. */
  readonly replayed: boolean;
}

/** Rolls back the transaction of a repeated call. */
class KeyTaken extends Error {
  override readonly name = "KeyTaken";
}

/** Makes creates idempotent by `Idempotency-Key`, even when sent concurrently. */
export class IdempotencyService {
  readonly #db: Kysely<Database>;
  readonly #clock: Clock;

  constructor(deps: { readonly db: Kysely<Database>; readonly clock: Clock }) {
    this.#db = deps.db;
    this.#clock = deps.clock;
  }

  /**
   * `make` checks permissions before it calls `once`, so a retry reveals nothing to a caller who lost them.
   * @throws DomainError idempotency_mismatch, already_exists, and those of `make`
   */
  async create<T, A>(call: CreateCall, creation: Creation<T, A>): Promise<Created<A>> {
    if (call.key === undefined) return { answer: creation.answer(await creation.make(always)), replayed: false };
    const { userId, projectId, route, key, body } = call;
    const name: CallName = { userId, projectId: projectId ?? "", route, key };
    const fingerprint = createHash("sha256").update(JSON.stringify(body)).digest("hex");
    if (creation.authorize !== undefined) {
      await creation.authorize();
      const record = await new IdempotencyStore(this.#db).find(name);
      const isKept = record !== null && record.expiresAt > this.#clock.now();
      if (isKept) return { answer: JSON.parse(keptAnswer(record, fingerprint)) as A, replayed: true };
    }
    try {
      const made = await creation.make(this.#once(name, fingerprint, creation));
      return { answer: creation.answer(made), replayed: false };
    } catch (error) {
      if (!(error instanceof KeyTaken)) throw error;
      const record = await new IdempotencyStore(this.#db).find(name);
      return { answer: JSON.parse(keptAnswer(record, fingerprint)) as A, replayed: true };
    }
  }

  #once<T, A>(name: CallName, fingerprint: string, creation: Creation<T, A>): Once<T> {
    return async (transaction, make) => {
      const store = new IdempotencyStore(transaction);
      const now = this.#clock.now();
      if (!(await store.claim(name, { fingerprint, expiresAt: now + IDEMPOTENCY_KEEP_MS }, now))) throw new KeyTaken();
      const made = await make();
      const answer = creation.secret === true ? null : JSON.stringify(creation.answer(made));
      await store.keep(name, { resourceId: creation.idOf(made), answer });
      return made;
    };
  }
}

/** @returns the stored response, unchanged: it lacks fields that newer versions add. */
function keptAnswer(record: CallRecord | null, fingerprint: string): string {
  if (record === null) {
    throw new DomainError("unavailable", "The first call with this `Idempotency-Key` has just expired. Retry.", {
      retryAfterSeconds: 1,
    });
  }
  if (record.fingerprint !== fingerprint) {
    throw new DomainError(
      "idempotency_mismatch",
      "This `Idempotency-Key` was used with a different body. Use a new key for a new call.",
      { param: "Idempotency-Key" },
    );
  }
  if (record.answer !== null) return record.answer;
  throw new DomainError(
    "already_exists",
    `This call was already made and created ${record.resourceId}. Its secret was returned only once and is not stored.`,
    { param: "Idempotency-Key" },
  );
}
