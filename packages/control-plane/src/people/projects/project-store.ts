import type { Role } from "@fairlead/protocol/resources";
import type { Kysely, Selectable } from "kysely";
import type { Database, ProjectTable } from "../../installation/db/tables/schema.ts";
import type { ProjectRecord } from "./project.ts";

export class ProjectStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  async insert(project: ProjectRecord): Promise<void> {
    const row: ProjectTable = {
      id: project.id,
      user_id: project.userId,
      name: project.name,
      created_at: project.createdAt,
      updated_at: project.updatedAt,
      deleting_since: project.deletingSince,
      default_model: project.defaultModel,
    };
    await this.#db.insertInto("project").values(row).execute();
  }

  async find(projectId: string): Promise<ProjectRecord | null> {
    const row = await this.#db.selectFrom("project").selectAll().where("id", "=", projectId).executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  /** Projects that the user can see, the oldest first: of those that are being deleted, their own. `after` is a project id. */
  async listOfUser(
    userId: string,
    page: { readonly after: string | null; readonly limit: number },
  ): Promise<readonly ProjectRecord[]> {
    const rows = await this.#db
      .selectFrom("project")
      .innerJoin("member", "member.project_id", "project.id")
      .selectAll("project")
      .where("member.user_id", "=", userId)
      .where((eb) => eb.or([eb("project.deleting_since", "is", null), eb("member.role", "=", "owner" satisfies Role)]))
      .where("project.id", ">", page.after ?? "")
      .orderBy("project.id")
      .limit(page.limit)
      .execute();
    return rows.map(fromRow);
  }

  /** @returns null for a project that is gone. */
  async update(
    projectId: string,
    { name, defaultModel, now }: Pick<ProjectRecord, "name" | "defaultModel"> & { readonly now: number },
  ): Promise<ProjectRecord | null> {
    const values = { name, default_model: defaultModel, updated_at: now };
    const change = this.#db.updateTable("project").set(values).where("id", "=", projectId);
    const row = await change.returningAll().executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  async markDeleting(projectId: string, since: number): Promise<void> {
    await this.#db.updateTable("project").set({ deleting_since: since }).where("id", "=", projectId).execute();
  }

  /** Ids of all projects that are being deleted. */
  async listDeleting(): Promise<readonly string[]> {
    const query = this.#db.selectFrom("project").select("id").where("deleting_since", "is not", null);
    return (await query.orderBy("deleting_since").execute()).map(({ id }) => id);
  }

  /** Members, keys and invitations go with it. @throws where a node of it is still there. */
  async deleteMarked(projectId: string): Promise<void> {
    const query = this.#db.deleteFrom("project").where("id", "=", projectId);
    await query.where("deleting_since", "is not", null).execute();
  }
}

function fromRow(row: Selectable<ProjectTable>): ProjectRecord {
  return {
    id: row.id,
    userId: row.user_id,
    name: row.name,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    deletingSince: row.deleting_since,
    defaultModel: row.default_model,
  };
}
