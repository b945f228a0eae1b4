import { type Kysely, sql } from "kysely";
import type { Database } from "../../installation/db/tables/schema.ts";

/** Deletes sessions that users no longer see, in chunks, so that a session with ten thousand items blocks no one. */
export class SessionRemovalStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /** Marks sessions of all projects without activity since then, except those with a running turn. @returns the number marked. */
  async markQuiet(options: { readonly before: number; readonly at: number; readonly limit: number }): Promise<number> {
    const { numUpdatedRows } = await this.#db
      .updateTable("chat_session")
      .set({ deleted_at: options.at })
      // Repeated, because a turn may have started meanwhile.
      .where("updated_at", "<", options.before)
      .where("deleted_at", "is", null)
      .where("id", "in", (eb) =>
        eb
          .selectFrom("chat_session as s")
          .select("s.id")
          .where("s.updated_at", "<", options.before)
          .where("s.deleted_at", "is", null)
          .where((own) =>
            own.not(
              own.exists(
                own
                  .selectFrom("chat_turn as t")
                  .select("t.id")
                  .whereRef("t.session_id", "=", "s.id")
                  .where("t.status", "=", sql.lit("open")),
              ),
            ),
          )
          .limit(options.limit),
      )
      .executeTakeFirst();
    return Number(numUpdatedRows);
  }

  /** Only for a project that is being deleted; does nothing for others. */
  async markAllOf(projectId: string, at: number): Promise<void> {
    await this.#db
      .updateTable("chat_session")
      .set({ deleted_at: at })
      .where("project_id", "=", projectId)
      .where("deleted_at", "is", null)
      .where((eb) =>
        eb.exists(
          eb
            .selectFrom("project")
            .select("project.id")
            .where("project.id", "=", projectId)
            .where("project.deleting_since", "is not", null),
        ),
      )
      .execute();
  }

  /** Of all projects, or of one. */
  async listMarked(limit: number, projectId?: string): Promise<readonly string[]> {
    let query = this.#db.selectFrom("chat_session").select("id").where("deleted_at", "is not", null);
    if (projectId !== undefined) query = query.where("project_id", "=", projectId);
    const rows = await query.limit(limit).execute();
    return rows.map(({ id }) => id);
  }

  /** @returns the number of rows deleted. */
  async deleteItems(sessionId: string, limit: number): Promise<number> {
    const { numDeletedRows } = await this.#db
      .deleteFrom("chat_item")
      .where("session_id", "=", sessionId)
      .where("position", "in", (eb) =>
        eb.selectFrom("chat_item").select("position").where("session_id", "=", sessionId).limit(limit),
      )
      .executeTakeFirst();
    return Number(numDeletedRows);
  }

  /** @returns the number of rows deleted. */
  async deleteTurns(sessionId: string, limit: number): Promise<number> {
    const { numDeletedRows } = await this.#db
      .deleteFrom("chat_turn")
      .where("id", "in", (eb) =>
        eb.selectFrom("chat_turn").select("id").where("session_id", "=", sessionId).limit(limit),
      )
      .executeTakeFirst();
    return Number(numDeletedRows);
  }

  /** Only deletes a marked session. */
  async deleteSession(id: string): Promise<void> {
    await this.#db.deleteFrom("chat_session").where("id", "=", id).where("deleted_at", "is not", null).execute();
  }

  /** Clears responses whose retry period is over. @returns the number cleared. */
  async forgetAnswers(before: number, limit: number): Promise<number> {
    const { numUpdatedRows } = await this.#db
      .updateTable("chat_turn")
      .set({ idempotency_key: null, response: null })
      .where("id", "in", (eb) =>
        eb
          .selectFrom("chat_turn")
          .select("id")
          .where("idempotency_key", "is not", null)
          .where("began_at", "<", before)
          .where("status", "<>", "open")
          .limit(limit),
      )
      .executeTakeFirst();
    return Number(numUpdatedRows);
  }
}
