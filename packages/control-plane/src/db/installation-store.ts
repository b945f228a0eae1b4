import type { Kysely } from "kysely";
import type { Database } from "./schema.ts";

/** Who this installation is: `id` for ever, `epoch` until a backup is restored. */
export interface InstallationRecord {
  readonly id: string;
  readonly epoch: string;
  readonly createdAt: number;
}

/** The one row; `fresh` becomes it in a new store. */
export async function ensureInstallation(db: Kysely<Database>, fresh: InstallationRecord): Promise<InstallationRecord> {
  return db.transaction().execute(async (transaction) => {
    const row = await transaction.selectFrom("installation").selectAll().executeTakeFirst();
    if (row) return { id: row.id, epoch: row.epoch, createdAt: row.created_at };
    const values = { id: fresh.id, epoch: fresh.epoch, created_at: fresh.createdAt };
    await transaction.insertInto("installation").values(values).execute();
    return fresh;
  });
}
