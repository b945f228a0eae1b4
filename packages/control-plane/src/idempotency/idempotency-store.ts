import type { Kysely, Selectable } from "kysely";
import type { Database, IdempotencyRecordTable } from "../db/schema.ts";

/** Which call it was. */
export interface CallName {
  readonly userId: string;
  /** "" where the call names no project. */
  readonly projectId: string;
  readonly route: string;
  readonly key: string;
}

export interface CallRecord {
  /** SHA-256 (hex) of the body. */
  readonly fingerprint: string;
  readonly resourceId: string;
  /** JSON; null where the answer held a secret. */
  readonly answer: string | null;
  readonly expiresAt: number;
}

export class IdempotencyStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /**
   * Takes the key for this transaction; a run-out record is replaced. Another transaction that is taking the same key is waited for.
   * @returns false where it is taken.
   */
  async claim(call: CallName, record: Pick<CallRecord, "fingerprint" | "expiresAt">, now: number): Promise<boolean> {
    const values = {
      fingerprint: record.fingerprint,
      resource_id: "",
      answer: null,
      expires_at: record.expiresAt,
    };
    const { numInsertedOrUpdatedRows } = await this.#db
      .insertInto("idempotency_record")
      .values({ user_id: call.userId, project_id: call.projectId, route: call.route, key: call.key, ...values })
      .onConflict((conflict) =>
        conflict
          .columns(["user_id", "project_id", "route", "key"])
          .doUpdateSet(values)
          .where("idempotency_record.expires_at", "<=", now),
      )
      .executeTakeFirstOrThrow();
    return numInsertedOrUpdatedRows === 1n;
  }

  /** What a call that took its key has answered. */
  async keep(call: CallName, made: Pick<CallRecord, "resourceId" | "answer">): Promise<void> {
    await this.#db
      .updateTable("idempotency_record")
      .set({ resource_id: made.resourceId, answer: made.answer })
      .where("user_id", "=", call.userId)
      .where("project_id", "=", call.projectId)
      .where("route", "=", call.route)
      .where("key", "=", call.key)
      .execute();
  }

  async find(call: CallName): Promise<CallRecord | null> {
    const row = await this.#db
      .selectFrom("idempotency_record")
      .selectAll()
      .where("user_id", "=", call.userId)
      .where("project_id", "=", call.projectId)
      .where("route", "=", call.route)
      .where("key", "=", call.key)
      .executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  /** @returns how many there were, at most `limit`. */
  async deleteExpired(now: number, limit: number): Promise<number> {
    const expired = this.#db
      .selectFrom("idempotency_record")
      .select(["user_id", "project_id", "route", "key"])
      .where("expires_at", "<=", now)
      .limit(limit);
    const { numDeletedRows } = await this.#db
      .deleteFrom("idempotency_record")
      .where((eb) =>
        eb(
          eb.refTuple("user_id", "project_id", "route", "key"),
          "in",
          expired.$asTuple("user_id", "project_id", "route", "key"),
        ),
      )
      .executeTakeFirstOrThrow();
    return Number(numDeletedRows);
  }
}

function fromRow(row: Selectable<IdempotencyRecordTable>): CallRecord {
  return {
    fingerprint: row.fingerprint,
    resourceId: row.resource_id,
    answer: row.answer,
    expiresAt: row.expires_at,
  };
}
