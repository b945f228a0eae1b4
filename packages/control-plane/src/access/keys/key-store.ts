import type { Kysely, Selectable } from "kysely";
import type { Database, ProjectKeyTable } from "../../installation/db/tables/schema.ts";
import type { KeyRecord, KeySettings, PreviousSecret } from "./key.ts";
import { limitsFromText } from "./key-limits.ts";

/** A use of a key. */
export interface KeyUsed {
  readonly projectId: string;
  readonly id: string;
  /** Unix milliseconds. */
  readonly at: number;
  /** Whether the secret before the last rotation was used. */
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

  /** Locks the row until the transaction ends. */
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

  /** By secret only, because the inference host does not know the project yet. Accepts the current secret and the one before a rotation. */
  async findByHash(secretHash: string): Promise<KeyRecord | null> {
    const row = await this.#db
      .selectFrom("project_key")
      .selectAll()
      .where((eb) => eb.or([eb("secret_hash", "=", secretHash), eb("previous_secret_hash", "=", secretHash)]))
      .executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  /** By the public part of the current secret, or of the one before a rotation. For the operator, across projects. */
  async findByPublicId(publicId: string): Promise<KeyRecord | null> {
    const row = await this.#db
      .selectFrom("project_key")
      .selectAll()
      .where((eb) => eb.or([eb("public_id", "=", publicId), eb("previous_public_id", "=", publicId)]))
      .executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  /** Oldest first. `page.after` is a key ID; `page.userId` null: keys of all users. */
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

  /** Disables a project's enabled keys, or those that one user created. @param userId null: all users. @returns their IDs. */
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
   * One statement at a time: a transaction on the store's thread would hold the write lock while waiting for the main
   * thread, which may be waiting for that lock.
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
