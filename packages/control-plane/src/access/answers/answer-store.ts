import type { AnsweredCall } from "@fairlead/inference/ports/kept-answers";
import type { Kysely } from "kysely";
import type { Database } from "../../installation/db/tables/schema.ts";

export interface AnswerRecord {
  /** SHA-256 (hex) of the call. */
  readonly fingerprint: string;
  /** Null if the response was too long to keep. */
  readonly sealed: string | null;
  /** Unix milliseconds. */
  readonly expiresAt: number;
}

export class AnswerStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /** @returns null also if it has expired. */
  async find({ projectId, callerId, key }: AnsweredCall, now: number): Promise<AnswerRecord | null> {
    const row = await this.#db
      .selectFrom("kept_answer")
      .select(["fingerprint", "sealed", "expires_at"])
      .where("project_id", "=", projectId)
      .where("caller_id", "=", callerId)
      .where("key", "=", key)
      .where("expires_at", ">", now)
      .executeTakeFirst();
    return row ? { fingerprint: row.fingerprint, sealed: row.sealed, expiresAt: row.expires_at } : null;
  }

  /** Replaces an expired one. */
  async put({ projectId, callerId, key }: AnsweredCall, record: AnswerRecord): Promise<void> {
    const values = { fingerprint: record.fingerprint, sealed: record.sealed, expires_at: record.expiresAt };
    await this.#db
      .insertInto("kept_answer")
      .values({ project_id: projectId, caller_id: callerId, key, ...values })
      .onConflict((conflict) => conflict.columns(["project_id", "caller_id", "key"]).doUpdateSet(values))
      .execute();
  }

  /** @returns the number deleted, at most `limit`. */
  async deleteExpired(now: number, limit: number): Promise<number> {
    const expired = this.#db
      .selectFrom("kept_answer")
      .select(["project_id", "caller_id", "key"])
      .where("expires_at", "<=", now)
      .limit(limit);
    const { numDeletedRows } = await this.#db
      .deleteFrom("kept_answer")
      .where((eb) =>
        eb(eb.refTuple("project_id", "caller_id", "key"), "in", expired.$asTuple("project_id", "caller_id", "key")),
      )
      .executeTakeFirstOrThrow();
    return Number(numDeletedRows);
  }
}
