import { type Role, roleSchema } from "@fairlead/protocol/resources";
import type { Kysely } from "kysely";
import type { Database } from "../db/schema.ts";
import type { MemberRecord } from "./project.ts";

export class MemberStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  async insert(member: MemberRecord): Promise<void> {
    const row = {
      project_id: member.projectId,
      user_id: member.userId,
      role: member.role,
      created_at: member.createdAt,
    };
    await this.#db.insertInto("member").values(row).execute();
  }

  async roleOf(projectId: string, userId: string): Promise<Role | null> {
    const row = await this.#db
      .selectFrom("member")
      .select("role")
      .where("project_id", "=", projectId)
      .where("user_id", "=", userId)
      .executeTakeFirst();
    return row ? roleSchema.parse(row.role) : null;
  }

  async rolesOf(userId: string): Promise<readonly { readonly projectId: string; readonly role: Role }[]> {
    const query = this.#db.selectFrom("member").select(["project_id", "role"]).where("user_id", "=", userId);
    const rows = await query.orderBy("project_id").execute();
    return rows.map((row) => ({ projectId: row.project_id, role: roleSchema.parse(row.role) }));
  }
}
