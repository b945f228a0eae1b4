import type { Kysely } from "kysely";
import type { Database } from "./tables/schema.ts";

/** Who this installation is: `id` for ever, `epoch` until a backup is restored. */
export interface InstallationRecord {
  readonly id: string;
  readonly epoch: string;
  readonly createdAt: number;
}

/** The one row; the first `fresh` becomes it in a new store. */
export async function ensureInstallation(db: Kysely<Database>, fresh: InstallationRecord): Promise<InstallationRecord> {
  await db
    .insertInto("installation")
    .values({ single: 1, id: fresh.id, epoch: fresh.epoch, created_at: fresh.createdAt })
    .onConflict((conflict) => conflict.column("single").doNothing())
    .execute();
  const row = await db.selectFrom("installation").selectAll().executeTakeFirstOrThrow();
  return { id: row.id, epoch: row.epoch, createdAt: row.created_at };
}
