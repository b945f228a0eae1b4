import type { Kysely } from "kysely";
import { dialectOf } from "../db/dialect.ts";
import { migrationState } from "../db/migrations/migrate.ts";
import type { Database } from "../db/tables/schema.ts";
import type { StoreFacts } from "./manifest.ts";

/** Reads what a backup says of its store; the tables are those that every version has had. */
export class BackupStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /** @throws StartError for a store that a newer program has written. */
  async facts(): Promise<StoreFacts> {
    const { applied } = await migrationState(this.#db);
    const { id, epoch } = await this.#db.selectFrom("installation").select(["id", "epoch"]).executeTakeFirstOrThrow();
    const keys = this.#db.selectFrom("signing_key").select("master_key_id").where("retired_at", "is", null);
    const { master_key_id: masterKeyId } = await keys.limit(1).executeTakeFirstOrThrow();
    return { store: dialectOf(this.#db), installationId: id, epoch, migrations: [...applied], masterKeyId };
  }
}
