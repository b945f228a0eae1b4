import { createHash } from "node:crypto";
import type { Clock } from "@fairlead/protocol/clock";
import { DomainError } from "@fairlead/protocol/errors";
import type { Kysely } from "kysely";
import type { Database } from "../db/schema.ts";
import { type CallName, type CallRecord, IdempotencyStore } from "./idempotency-store.ts";
import { always, type Once } from "./once.ts";

/** How long a repeat answers what the first call did (design §4). */
export const KEEP_MS = 24 * 3_600_000;

export interface CreateCall {
  /** The header `Idempotency-Key`. */
  readonly key: string | undefined;
  readonly userId: string;
  /** Null: the call names no project. */
  readonly projectId: string | null;
  /** `POST /v1/nodes` */
  readonly route: string;
  /** As it was parsed. */
  readonly body: unknown;
}

/** How to make the resource, and what the call then answers. */
export interface Creation<T, A> {
  readonly make: (once: Once<T>) => Promise<T>;
  readonly answer: (made: T) => A;
  readonly idOf: (made: T) => string;
  /** The answer holds a secret, which is never kept: a repeat is refused. */
  readonly secret?: boolean;
  /**
   * The check of the caller's rights, of a `make` that asks somebody else before it writes: a repeat is answered right after it,
   * and nobody is asked again.
   */
  readonly authorize?: () => Promise<void>;
}

export interface Created<A> {
  readonly answer: A;
  /** Kept from an earlier call. */
  readonly replayed: boolean;
}

/** Undoes the transaction of a call that was made before. */
class KeyTaken extends Error {
  override readonly name = "KeyTaken";
}

/** Makes creates happen once for a key, however often and however concurrently they are sent (design §4, `Idempotency-Key`). */
export class IdempotencyService {
  readonly #db: Kysely<Database>;
  readonly #clock: Clock;

  constructor(deps: { readonly db: Kysely<Database>; readonly clock: Clock }) {
    this.#db = deps.db;
    this.#clock = deps.clock;
  }

  /**
   * The caller's rights are checked by `make`, before `once` runs, so a repeat shows nothing to somebody who lost them.
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
      if (!(await store.claim(name, { fingerprint, expiresAt: now + KEEP_MS }, now))) throw new KeyTaken();
      const made = await make();
      const answer = creation.secret === true ? null : JSON.stringify(creation.answer(made));
      await store.keep(name, { resourceId: creation.idOf(made), answer });
      return made;
    };
  }
}

/** @returns the kept answer, sent as it was: the fields that a newer version adds were not in it. */
function keptAnswer(record: CallRecord | null, fingerprint: string): string {
  if (record === null) {
    throw new DomainError(
      "unavailable",
      "The first call with this `Idempotency-Key` has just run out. Send it again.",
      {
        retryAfterSeconds: 1,
      },
    );
  }
  if (record.fingerprint !== fingerprint) {
    throw new DomainError(
      "idempotency_mismatch",
      "This `Idempotency-Key` was used with another body. Use a new key for a new call.",
      { param: "Idempotency-Key" },
    );
  }
  if (record.answer !== null) return record.answer;
  throw new DomainError(
    "already_exists",
    `This call was made before, and made ${record.resourceId}; its secret was shown then and is kept nowhere.`,
    { param: "Idempotency-Key" },
  );
}
