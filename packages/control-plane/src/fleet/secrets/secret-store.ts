import type { Kysely, Selectable } from "kysely";
import { z } from "zod";
import type { Database } from "../../installation/db/tables/schema.ts";
import type { SecretTable } from "../../installation/db/tables/secret-tables.ts";
import type { SecretRecord } from "./secret.ts";
import type { SecretOwnerKind } from "./secret-key.ts";

const sealedBySchema = z.enum(["master", "node"]);

/** Secrets of one kind of owner. Deleting one keeps its row without the value, so that version numbers continue. */
export class SecretStore {
  readonly #db: Kysely<Database>;
  readonly #table: "node_secret" | "agent_secret";

  constructor(db: Kysely<Database>, kind: SecretOwnerKind) {
    this.#db = db;
    this.#table = `${kind}_secret`;
  }

  async put(secret: SecretRecord): Promise<void> {
    const values = {
      version: secret.version,
      sealed_by: secret.sealedBy,
      sealed: secret.sealed,
      sealed_to: secret.sealedTo,
      provider_key: secret.providerKey ? 1 : 0,
      deleted: 0,
      updated_at: secret.updatedAt,
    };
    await this.#db
      .insertInto(this.#table)
      .values({ owner_id: secret.ownerId, name: secret.name, created_at: secret.updatedAt, ...values })
      .onConflict((conflict) => conflict.columns(["owner_id", "name"]).doUpdateSet(values))
      .execute();
  }

  /** The highest version ever used for the name, or 0. */
  async lastVersion(ownerId: string, name: string): Promise<number> {
    const query = this.#db.selectFrom(this.#table).select("version").where("owner_id", "=", ownerId);
    return (await query.where("name", "=", name).executeTakeFirst())?.version ?? 0;
  }

  async find(ownerId: string, name: string): Promise<SecretRecord | null> {
    const query = this.#db.selectFrom(this.#table).selectAll().where("owner_id", "=", ownerId).where("deleted", "=", 0);
    const row = await query.where("name", "=", name).executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  /** @returns whether it existed. */
  async delete(ownerId: string, name: string): Promise<boolean> {
    const { numUpdatedRows } = await this.#db
      .updateTable(this.#table)
      .set({ deleted: 1, sealed: "", sealed_to: null, provider_key: 0 })
      .where("owner_id", "=", ownerId)
      .where("name", "=", name)
      .where("deleted", "=", 0)
      .executeTakeFirst();
    return numUpdatedRows > 0n;
  }

  /** By name. */
  async list(ownerId: string): Promise<SecretRecord[]> {
    const rows = await this.#db
      .selectFrom(this.#table)
      .selectAll()
      .where("owner_id", "=", ownerId)
      .where("deleted", "=", 0)
      .orderBy("name")
      .execute();
    return rows.map(fromRow);
  }
}

function fromRow(row: Selectable<SecretTable>): SecretRecord {
  return {
    ownerId: row.owner_id,
    name: row.name,
    version: row.version,
    sealedBy: sealedBySchema.parse(row.sealed_by),
    sealed: row.sealed,
    sealedTo: row.sealed_to,
    providerKey: row.provider_key === 1,
    updatedAt: row.updated_at,
  };
}
