import type { Kysely, Selectable } from "kysely";
import type { Database, ProviderTable } from "../../installation/db/tables/schema.ts";
import { type ProviderRecord, providerSettingsSchema } from "./provider.ts";

/** Rows of `provider`. */
export class ProviderStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  async insert(record: ProviderRecord): Promise<void> {
    await this.#db.insertInto("provider").values(toRow(record)).execute();
  }

  /** By name. */
  async list(projectId: string): Promise<ProviderRecord[]> {
    const query = this.#db.selectFrom("provider").selectAll().where("project_id", "=", projectId);
    return (await query.orderBy("name").execute()).map(fromRow);
  }

  async find(projectId: string, name: string): Promise<ProviderRecord | null> {
    const query = this.#db.selectFrom("provider").selectAll().where("project_id", "=", projectId);
    const row = await query.where("name", "=", name).executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  async update(record: ProviderRecord): Promise<void> {
    const { project_id, name, ...values } = toRow(record);
    const query = this.#db.updateTable("provider").set(values).where("project_id", "=", project_id);
    await query.where("name", "=", name).execute();
  }

  async delete(projectId: string, name: string): Promise<void> {
    await this.#db.deleteFrom("provider").where("project_id", "=", projectId).where("name", "=", name).execute();
  }
}

function toRow(record: ProviderRecord): ProviderTable {
  return {
    project_id: record.projectId,
    name: record.name,
    user_id: record.userId,
    base_url: record.baseUrl,
    settings: JSON.stringify(record.settings),
    sealed_credential: record.sealedCredential,
    created_at: record.createdAt,
    updated_at: record.updatedAt,
  };
}

function fromRow(row: Selectable<ProviderTable>): ProviderRecord {
  return {
    projectId: row.project_id,
    name: row.name,
    userId: row.user_id,
    baseUrl: row.base_url,
    settings: providerSettingsSchema.parse(JSON.parse(row.settings)),
    sealedCredential: row.sealed_credential,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}
