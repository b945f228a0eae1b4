import type { Kysely, Selectable } from "kysely";
import type { Database, ProjectKeyTable } from "../db/schema.ts";
import type { KeyRecord, KeySettings, PreviousSecret } from "./key.ts";
import { limitsFromText } from "./key-limits.ts";

/** That a key was used. */
export interface KeyUsed {
  readonly projectId: string;
  readonly id: string;
  /** Unix milliseconds. */
  readonly at: number;
  /** With the secret before a rotation. */
  readonly withPrevious: boolean;
}

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
      created_at: key.createdAt,
      last_used_at: key.lastUsedAt,
      ...settingColumns(key),
      ...secretColumns(key),
    };
    await this.#db.insertInto("project_key").values(row).execute();
  }

  async find(projectId: string, id: string): Promise<KeyRecord | null> {
    const query = this.#db.selectFrom("project_key").selectAll().where("project_id", "=", projectId);
    const row = await query.where("id", "=", id).executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  /** Holds the row until the transaction ends. */
  async findForUpdate(projectId: string, id: string): Promise<KeyRecord | null> {
    const row = await this.#db
      .updateTable("project_key")
      .set((eb) => ({ created_at: eb.ref("created_at") }))
      .where("project_id", "=", projectId)
      .where("id", "=", id)
      .returningAll()
      .executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  /** By the secret alone, as the inference host knows no project yet: the present one, or the one before a rotation. */
  async findByHash(secretHash: string): Promise<KeyRecord | null> {
    const row = await this.#db
      .selectFrom("project_key")
      .selectAll()
      .where((eb) => eb.or([eb("secret_hash", "=", secretHash), eb("previous_secret_hash", "=", secretHash)]))
      .executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  /** The oldest first. `page.after` is a key's id; `page.userId` null: whoever made them. */
  async list(
    projectId: string,
    page: { readonly userId: string | null; readonly after: string | null; readonly limit: number },
  ): Promise<readonly KeyRecord[]> {
    let query = this.#db.selectFrom("project_key").selectAll().where("project_id", "=", projectId);
    if (page.userId !== null) query = query.where("user_id", "=", page.userId);
    const rows = await query
      .where("id", ">", page.after ?? "")
      .orderBy("id")
      .limit(page.limit)
      .execute();
    return rows.map(fromRow);
  }

  async setSettings(projectId: string, id: string, settings: KeySettings): Promise<void> {
    const change = this.#db.updateTable("project_key").set(settingColumns(settings));
    await change.where("project_id", "=", projectId).where("id", "=", id).execute();
  }

  async setSecrets(projectId: string, id: string, secrets: KeySecrets): Promise<void> {
    const change = this.#db.updateTable("project_key").set(secretColumns(secrets));
    await change.where("project_id", "=", projectId).where("id", "=", id).execute();
  }

  async delete(projectId: string, id: string): Promise<void> {
    await this.#db.deleteFrom("project_key").where("project_id", "=", projectId).where("id", "=", id).execute();
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

  /**
   * Statement by statement: a transaction on the store's thread would hold the write lock while it waits for the main thread, which
   * may itself be waiting for that lock.
   */
  async setUsed(uses: Iterable<KeyUsed>): Promise<void> {
    for (const { projectId, id, at, withPrevious } of uses) {
      await this.#db
        .updateTable("project_key")
        .set(withPrevious ? { last_used_at: at, previous_last_used_at: at } : { last_used_at: at })
        .where("project_id", "=", projectId)
        .where("id", "=", id)
        .execute();
    }
  }
}

type KeySecrets = Pick<KeyRecord, "publicId" | "secretHash" | "previous">;

function settingColumns({ name, enabled, expiresAt, limits }: KeySettings) {
  return { name, enabled: enabled ? 1 : 0, expires_at: expiresAt, limits: JSON.stringify(limits) };
}

function secretColumns({ publicId, secretHash, previous }: KeySecrets) {
  return {
    public_id: publicId,
    secret_hash: secretHash,
    previous_public_id: previous?.publicId ?? null,
    previous_secret_hash: previous?.secretHash ?? null,
    previous_ends_at: previous?.endsAt ?? null,
    previous_last_used_at: previous?.lastUsedAt ?? null,
  };
}

type KeyRow = Selectable<ProjectKeyTable>;

function fromRow(row: KeyRow): KeyRecord {
  return {
    id: row.id,
    projectId: row.project_id,
    userId: row.user_id,
    name: row.name,
    publicId: row.public_id,
    secretHash: row.secret_hash,
    enabled: row.enabled !== 0,
    expiresAt: row.expires_at,
    limits: limitsFromText(row.limits),
    lastUsedAt: row.last_used_at,
    previous: previousFromRow(row),
    createdAt: row.created_at,
  };
}

function previousFromRow(row: KeyRow): PreviousSecret | null {
  const { previous_public_id: publicId, previous_secret_hash: secretHash, previous_ends_at: endsAt } = row;
  if (publicId === null || secretHash === null || endsAt === null) return null;
  return { publicId, secretHash, endsAt, lastUsedAt: row.previous_last_used_at };
}
