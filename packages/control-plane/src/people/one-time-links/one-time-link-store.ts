import type { Role } from "@fairlead/protocol/resources";
import type { Kysely, Selectable } from "kysely";
import type { Database, OneTimeLinkTable } from "../../installation/db/tables/schema.ts";
import { type LinkPurpose, linkSubject, type OneTimeLinkRecord } from "./one-time-link.ts";

export interface MadeBy {
  readonly projectId: string;
  readonly createdBy: string;
  readonly roles: readonly Role[] | null;
}

export class OneTimeLinkStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /** Replaces the link with the same subject, if any. */
  async replace(link: OneTimeLinkRecord, tokenHash: string): Promise<void> {
    const row: OneTimeLinkTable = {
      id: link.id,
      purpose: link.purpose,
      subject: linkSubject(link),
      token_hash: tokenHash,
      email: link.email,
      user_id: link.userId,
      project_id: link.projectId,
      role: link.role,
      created_by: link.createdBy,
      created_at: link.createdAt,
      expires_at: link.expiresAt,
      used_by: link.usedBy,
      used_at: link.usedAt,
      revoked_at: link.revokedAt,
    };
    await this.#db
      .insertInto("one_time_link")
      .values(row)
      .onConflict((conflict) => conflict.column("subject").doUpdateSet(row))
      .execute();
  }

  async findByHash(tokenHash: string): Promise<OneTimeLinkRecord | null> {
    const query = this.#db.selectFrom("one_time_link").selectAll().where("token_hash", "=", tokenHash);
    const row = await query.executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  /** One statement, so that only one of several concurrent attempts succeeds. @returns null if the link is not open. */
  async spend(tokenHash: string, usedBy: string, now: number): Promise<OneTimeLinkRecord | null> {
    const row = await this.#db
      .updateTable("one_time_link")
      .set({ used_by: usedBy, used_at: now })
      .where("token_hash", "=", tokenHash)
      .where("used_at", "is", null)
      .where("revoked_at", "is", null)
      .where("expires_at", ">", now)
      .returningAll()
      .executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  /** The project's open invitations, oldest first. `after` is a link ID. */
  async listOpen(
    projectId: string,
    now: number,
    page: { readonly after: string | null; readonly limit: number },
  ): Promise<readonly OneTimeLinkRecord[]> {
    const rows = await this.#db
      .selectFrom("one_time_link")
      .selectAll()
      .where("project_id", "=", projectId)
      .where("purpose", "=", "invitation")
      .where("used_at", "is", null)
      .where("revoked_at", "is", null)
      .where("expires_at", ">", now)
      .where("id", ">", page.after ?? "")
      .orderBy("id")
      .limit(page.limit)
      .execute();
    return rows.map(fromRow);
  }

  /** @returns null if the project has no such open link. */
  async revoke(projectId: string, id: string, now: number): Promise<OneTimeLinkRecord | null> {
    const row = await this.#db
      .updateTable("one_time_link")
      .set({ revoked_at: now })
      .where("project_id", "=", projectId)
      .where("id", "=", id)
      .where("used_at", "is", null)
      .where("revoked_at", "is", null)
      .where("expires_at", ">", now)
      .returningAll()
      .executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  /** Revokes open invitations that this user created. @param roles only those that grant one of these; null: all. */
  async revokeMadeBy({ projectId, createdBy, roles }: MadeBy, now: number): Promise<readonly OneTimeLinkRecord[]> {
    if (roles?.length === 0) return [];
    let query = this.#db
      .updateTable("one_time_link")
      .set({ revoked_at: now })
      .where("project_id", "=", projectId)
      .where("purpose", "=", "invitation")
      .where("created_by", "=", createdBy)
      .where("used_at", "is", null)
      .where("revoked_at", "is", null)
      .where("expires_at", ">", now);
    if (roles !== null) query = query.where("role", "in", roles);
    return (await query.returningAll().execute()).map(fromRow);
  }

  /** Deletes links that expired before `before`. @returns the number deleted, at most `limit`. */
  async deleteEnded(before: number, limit: number): Promise<number> {
    const ended = this.#db.selectFrom("one_time_link").select("id").where("expires_at", "<=", before).limit(limit);
    const { numDeletedRows } = await this.#db
      .deleteFrom("one_time_link")
      .where("id", "in", ended)
      .executeTakeFirstOrThrow();
    return Number(numDeletedRows);
  }
}

function fromRow(row: Selectable<OneTimeLinkTable>): OneTimeLinkRecord {
  return {
    id: row.id,
    purpose: row.purpose as LinkPurpose,
    email: row.email,
    userId: row.user_id,
    projectId: row.project_id,
    role: row.role as Role | null,
    createdBy: row.created_by,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    usedBy: row.used_by,
    usedAt: row.used_at,
    revokedAt: row.revoked_at,
  };
}
