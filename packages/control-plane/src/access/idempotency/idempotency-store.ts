import type { Kysely, Selectable } from "kysely";
import type { Database, IdempotencyRecordTable } from "../../installation/db/tables/schema.ts";

/** Identifies a call. */
export interface CallName {
  readonly userId: string;
  /** "" if the request names no project. */
  readonly projectId: string;
  readonly route: string;
  readonly key: string;
}

export interface CallRecord {
  /** SHA-256 (hex) of the body. */
  readonly fingerprint: string;
  readonly resourceId: string;
  /** JSON; null if the response contained a secret. */
  readonly answer: string | null;
  readonly expiresAt: number;
}

export class IdempotencyStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /**
   * Takes the key in this transaction, replacing an expired record. Waits for another transaction that is taking it.
   * @returns false if it is taken.
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

  /** Stores the response of a call that took its key. */
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

  /** @returns the number deleted, at most `limit`. */
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
