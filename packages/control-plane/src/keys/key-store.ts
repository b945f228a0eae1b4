import type { Kysely, Selectable } from "kysely";
import type { Database, ProjectKeyTable } from "../db/schema.ts";
import type { KeyRecord } from "./key.ts";

export class KeyStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  transaction<T>(work: (keys: KeyStore, transaction: Kysely<Database>) => Promise<T>): Promise<T> {
    return this.#db.transaction().execute((transaction) => work(new KeyStore(transaction), transaction));
  }

  async insert(key: KeyRecord): Promise<void> {
    const row: ProjectKeyTable = {
      id: key.id,
      project_id: key.projectId,
      user_id: key.userId,
      name: key.name,
      public_id: key.publicId,
      secret_hash: key.secretHash,
      enabled: key.enabled ? 1 : 0,
      expires_at: key.expiresAt,
      created_at: key.createdAt,
    };
    await this.#db.insertInto("project_key").values(row).execute();
  }

  /** The enabled keys of a project, or those that one user made in it. @param userId null: whoever made them. @returns their ids. */
  async disable(projectId: string, userId: string | null): Promise<readonly string[]> {
    let query = this.#db
      .updateTable("project_key")
      .set({ enabled: 0 })
      .where("project_id", "=", projectId)
      .where("enabled", "=", 1);
    if (userId !== null) query = query.where("user_id", "=", userId);
    const rows = await query.returning("id").execute();
    return rows.map(({ id }) => id);
  }

  /** By the secret alone, as the inference host knows no project yet. */
  async findByHash(secretHash: string): Promise<KeyRecord | null> {
    const query = this.#db.selectFrom("project_key").selectAll().where("secret_hash", "=", secretHash);
    const row = await query.executeTakeFirst();
    return row ? fromRow(row) : null;
  }
}

function fromRow(row: Selectable<ProjectKeyTable>): KeyRecord {
  return {
    id: row.id,
    projectId: row.project_id,
    userId: row.user_id,
    name: row.name,
    publicId: row.public_id,
    secretHash: row.secret_hash,
    enabled: row.enabled !== 0,
    expiresAt: row.expires_at,
    createdAt: row.created_at,
  };
}
