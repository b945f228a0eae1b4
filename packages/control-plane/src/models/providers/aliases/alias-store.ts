import type { Kysely, Selectable } from "kysely";
import { z } from "zod";
import type { Database, ModelAliasTable } from "../../../installation/db/tables/schema.ts";
import type { AliasRecord } from "./alias.ts";

const storedTargets = z.array(z.string());

/** Rows of `model_alias`. */
export class AliasStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /** By name. */
  async list(projectId: string): Promise<AliasRecord[]> {
    const query = this.#db.selectFrom("model_alias").selectAll().where("project_id", "=", projectId);
    return (await query.orderBy("name").execute()).map(fromRow);
  }

  async find(projectId: string, name: string): Promise<AliasRecord | null> {
    const query = this.#db.selectFrom("model_alias").selectAll().where("project_id", "=", projectId);
    const row = await query.where("name", "=", name).executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  /** Creates it, or replaces its targets. */
  async put(record: AliasRecord): Promise<void> {
    const { projectId, name, createdAt, updatedAt } = record;
    const values = { targets: JSON.stringify(record.targets), updated_at: updatedAt };
    await this.#db
      .insertInto("model_alias")
      .values({ project_id: projectId, name, created_at: createdAt, ...values })
      .onConflict((conflict) => conflict.columns(["project_id", "name"]).doUpdateSet(values))
      .execute();
  }

  async delete(projectId: string, name: string): Promise<void> {
    await this.#db.deleteFrom("model_alias").where("project_id", "=", projectId).where("name", "=", name).execute();
  }
}

function fromRow(row: Selectable<ModelAliasTable>): AliasRecord {
  return {
    projectId: row.project_id,
    name: row.name,
    targets: storedTargets.parse(JSON.parse(row.targets)),
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}
