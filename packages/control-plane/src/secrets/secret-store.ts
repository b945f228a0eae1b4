import type { Kysely, Selectable } from "kysely";
import { z } from "zod";
import type { NodeSecretTable } from "../db/node-tables.ts";
import type { Database } from "../db/schema.ts";
import type { NodeSecretRecord } from "./secret.ts";

const sealedBySchema = z.enum(["master", "node"]);

/** Rows of `node_secret`. A deleted secret leaves its row, without a value, so that its versions go on counting. */
export class SecretStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  async put(secret: NodeSecretRecord): Promise<void> {
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
      .insertInto("node_secret")
      .values({ node_id: secret.nodeId, name: secret.name, created_at: secret.updatedAt, ...values })
      .onConflict((conflict) => conflict.columns(["node_id", "name"]).doUpdateSet(values))
      .execute();
  }

  /** The highest version that the name ever had, 0 for none. */
  async lastVersion(nodeId: string, name: string): Promise<number> {
    const query = this.#db.selectFrom("node_secret").select("version").where("node_id", "=", nodeId);
    return (await query.where("name", "=", name).executeTakeFirst())?.version ?? 0;
  }

  async find(nodeId: string, name: string): Promise<NodeSecretRecord | null> {
    const query = this.#db.selectFrom("node_secret").selectAll().where("node_id", "=", nodeId).where("deleted", "=", 0);
    const row = await query.where("name", "=", name).executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  /** @returns whether there was one. */
  async delete(nodeId: string, name: string): Promise<boolean> {
    const { numUpdatedRows } = await this.#db
      .updateTable("node_secret")
      .set({ deleted: 1, sealed: "", sealed_to: null, provider_key: 0 })
      .where("node_id", "=", nodeId)
      .where("name", "=", name)
      .where("deleted", "=", 0)
      .executeTakeFirst();
    return numUpdatedRows > 0n;
  }

  /** By name. */
  async list(nodeId: string): Promise<NodeSecretRecord[]> {
    const rows = await this.#db
      .selectFrom("node_secret")
      .selectAll()
      .where("node_id", "=", nodeId)
      .where("deleted", "=", 0)
      .orderBy("name")
      .execute();
    return rows.map(fromRow);
  }
}

function fromRow(row: Selectable<NodeSecretTable>): NodeSecretRecord {
  return {
    nodeId: row.node_id,
    name: row.name,
    version: row.version,
    sealedBy: sealedBySchema.parse(row.sealed_by),
    sealed: row.sealed,
    sealedTo: row.sealed_to,
    providerKey: row.provider_key === 1,
    updatedAt: row.updated_at,
  };
}
