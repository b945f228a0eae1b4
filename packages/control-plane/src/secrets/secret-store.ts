import type { Kysely } from "kysely";
import { z } from "zod";
import type { Database } from "../db/schema.ts";
import type { NodeSecretRecord } from "./secret.ts";

const sealedBySchema = z.enum(["master", "node"]);

export class SecretStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  async put(secret: NodeSecretRecord): Promise<void> {
    const values = { sealed_by: secret.sealedBy, sealed: secret.sealed, updated_at: secret.updatedAt };
    await this.#db
      .insertInto("node_secret")
      .values({ node_id: secret.nodeId, name: secret.name, created_at: secret.updatedAt, ...values })
      .onConflict((conflict) => conflict.columns(["node_id", "name"]).doUpdateSet(values))
      .execute();
  }

  /** @returns whether there was one. */
  async delete(nodeId: string, name: string): Promise<boolean> {
    const { numDeletedRows } = await this.#db
      .deleteFrom("node_secret")
      .where("node_id", "=", nodeId)
      .where("name", "=", name)
      .executeTakeFirst();
    return numDeletedRows > 0n;
  }

  /** By name. */
  async list(nodeId: string): Promise<NodeSecretRecord[]> {
    const rows = await this.#db
      .selectFrom("node_secret")
      .selectAll()
      .where("node_id", "=", nodeId)
      .orderBy("name")
      .execute();
    return rows.map((row) => ({
      nodeId: row.node_id,
      name: row.name,
      sealedBy: sealedBySchema.parse(row.sealed_by),
      sealed: row.sealed,
      updatedAt: row.updated_at,
    }));
  }
}
