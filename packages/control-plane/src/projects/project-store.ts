import type { Kysely, Selectable } from "kysely";
import type { Database, ProjectTable } from "../db/schema.ts";
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
    };
    await this.#db.insertInto("project").values(row).execute();
  }

  async find(projectId: string): Promise<ProjectRecord | null> {
    const row = await this.#db.selectFrom("project").selectAll().where("id", "=", projectId).executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  /** Projects of which the user is a member, the oldest first. `after` is a project id. */
  async listOfUser(
    userId: string,
    page: { readonly after: string | null; readonly limit: number },
  ): Promise<readonly ProjectRecord[]> {
    const rows = await this.#db
      .selectFrom("project")
      .innerJoin("member", "member.project_id", "project.id")
      .selectAll("project")
      .where("member.user_id", "=", userId)
      .where("project.id", ">", page.after ?? "")
      .orderBy("project.id")
      .limit(page.limit)
      .execute();
    return rows.map(fromRow);
  }
}

function fromRow(row: Selectable<ProjectTable>): ProjectRecord {
  return {
    id: row.id,
    userId: row.user_id,
    name: row.name,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}
