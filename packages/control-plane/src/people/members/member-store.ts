import { type Role, roleSchema } from "@fairlead/protocol/resources";
import type { Kysely } from "kysely";
import type { Database } from "../../installation/db/tables/schema.ts";
import type { MemberRecord, MembershipRecord } from "./member.ts";

export class MemberStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  async insert(member: MembershipRecord): Promise<void> {
    const row = {
      project_id: member.projectId,
      user_id: member.userId,
      role: member.role,
      created_at: member.createdAt,
    };
    await this.#db.insertInto("member").values(row).execute();
  }

  /**
   * Locks the project's row until the transaction ends, which serializes changes of members and deletion.
   * @returns null if there is no such project.
   */
  async holdProject(projectId: string): Promise<{ readonly deleting: boolean } | null> {
    const row = await this.#db
      .updateTable("project")
      .set((eb) => ({ created_at: eb.ref("created_at") }))
      .where("id", "=", projectId)
      .returning("deleting_since")
      .executeTakeFirst();
    return row ? { deleting: row.deleting_since !== null } : null;
  }

  /** `deleting`: the project is being deleted. */
  async membershipOf(
    projectId: string,
    userId: string,
  ): Promise<{ readonly role: Role; readonly deleting: boolean } | null> {
    const row = await this.#db
      .selectFrom("member")
      .innerJoin("project", "project.id", "member.project_id")
      .select(["member.role", "project.deleting_since"])
      .where("member.project_id", "=", projectId)
      .where("member.user_id", "=", userId)
      .executeTakeFirst();
    return row ? { role: roleSchema.parse(row.role), deleting: row.deleting_since !== null } : null;
  }

  /** Omits projects that are being deleted, except for their owners. */
  async rolesOf(userId: string): Promise<readonly { readonly projectId: string; readonly role: Role }[]> {
    const rows = await this.#db
      .selectFrom("member")
      .innerJoin("project", "project.id", "member.project_id")
      .select(["member.project_id", "member.role"])
      .where("member.user_id", "=", userId)
      .where((eb) => eb.or([eb("project.deleting_since", "is", null), eb("member.role", "=", "owner" satisfies Role)]))
      .orderBy("member.project_id")
      .execute();
    return rows.map((row) => ({ projectId: row.project_id, role: roleSchema.parse(row.role) }));
  }

  async find(projectId: string, userId: string): Promise<MemberRecord | null> {
    const row = await this.#members(projectId).where("member.user_id", "=", userId).executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  /** @param email in lower case. */
  async findByEmail(projectId: string, email: string): Promise<MemberRecord | null> {
    const row = await this.#members(projectId).where("user.email", "=", email).executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  /** By user ID; `after` is one of these. */
  async list(
    projectId: string,
    page: { readonly after: string | null; readonly limit: number },
  ): Promise<readonly MemberRecord[]> {
    const query = this.#members(projectId).where("member.user_id", ">", page.after ?? "");
    const rows = await query.orderBy("member.user_id").limit(page.limit).execute();
    return rows.map(fromRow);
  }

  async countOwners(projectId: string): Promise<number> {
    const { count } = await this.#db
      .selectFrom("member")
      .select((eb) => eb.fn.countAll().as("count"))
      .where("project_id", "=", projectId)
      .where("role", "=", "owner" satisfies Role)
      .executeTakeFirstOrThrow();
    return Number(count);
  }

  async setRole(projectId: string, userId: string, role: Role): Promise<void> {
    await this.#db
      .updateTable("member")
      .set({ role })
      .where("project_id", "=", projectId)
      .where("user_id", "=", userId)
      .execute();
  }

  async delete(projectId: string, userId: string): Promise<void> {
    await this.#db.deleteFrom("member").where("project_id", "=", projectId).where("user_id", "=", userId).execute();
  }

  #members(projectId: string) {
    return this.#db
      .selectFrom("member")
      .innerJoin("user", "user.id", "member.user_id")
      .select(["member.project_id", "member.user_id", "member.role", "member.created_at", "user.email"])
      .where("member.project_id", "=", projectId);
  }
}

interface MemberRow {
  readonly project_id: string;
  readonly user_id: string;
  readonly role: string;
  readonly created_at: number;
  readonly email: string;
}

function fromRow(row: MemberRow): MemberRecord {
  return {
    projectId: row.project_id,
    userId: row.user_id,
    email: row.email,
    role: roleSchema.parse(row.role),
    createdAt: row.created_at,
  };
}
