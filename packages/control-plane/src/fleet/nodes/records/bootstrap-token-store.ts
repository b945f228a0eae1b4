import type { Kysely } from "kysely";
import type { Database } from "../../../installation/db/tables/schema.ts";

export interface BootstrapTokenRecord {
  readonly id: string;
  readonly nodeId: string;
  readonly tokenHash: string;
  readonly expiresAt: number;
  readonly voidedAt: number | null;
  /** Thumbprint of the key that used the token. */
  readonly usedBy: string | null;
}

export class BootstrapTokenStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /** Invalidates the node's unused tokens and stores a new one. Call it in a transaction. */
  async issue(
    token: Pick<BootstrapTokenRecord, "id" | "nodeId" | "tokenHash" | "expiresAt">,
    now: number,
  ): Promise<void> {
    await this.#db
      .updateTable("bootstrap_token")
      .set({ voided_at: now })
      .where("node_id", "=", token.nodeId)
      .where("used_by", "is", null)
      .where("voided_at", "is", null)
      .execute();
    await this.#db
      .insertInto("bootstrap_token")
      .values({
        id: token.id,
        node_id: token.nodeId,
        token_hash: token.tokenHash,
        expires_at: token.expiresAt,
        voided_at: null,
        used_by: null,
        used_at: null,
        created_at: now,
      })
      .execute();
  }

  async findByHash(tokenHash: string): Promise<BootstrapTokenRecord | null> {
    const row = await this.#db
      .selectFrom("bootstrap_token")
      .selectAll()
      .where("token_hash", "=", tokenHash)
      .executeTakeFirst();
    if (!row) return null;
    return {
      id: row.id,
      nodeId: row.node_id,
      tokenHash: row.token_hash,
      expiresAt: row.expires_at,
      voidedAt: row.voided_at,
      usedBy: row.used_by,
    };
  }

  /** Binds the token to the first key that uses it. @returns true if it is bound to this key. */
  async spend(id: string, thumbprint: string, now: number): Promise<boolean> {
    await this.#db
      .updateTable("bootstrap_token")
      .set({ used_by: thumbprint, used_at: now })
      .where("id", "=", id)
      .where("used_by", "is", null)
      .execute();
    const row = await this.#db.selectFrom("bootstrap_token").select("used_by").where("id", "=", id).executeTakeFirst();
    return row?.used_by === thumbprint;
  }
}
