import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { IdSource } from "@fairlead/protocol/values/ids";
import type { Kysely } from "kysely";
import { z } from "zod";
import type { StoreLocation } from "../db/open.ts";
import { copyStore } from "../db/store-copy.ts";
import type { Database } from "../db/tables/schema.ts";
import { StartError } from "../process/start-error.ts";
import { BackupStore } from "./backup-store.ts";
import { type StoreFacts, storeFactsSchema } from "./manifest.ts";

/** A copy of the store in the data folder, where a server under systemd may write. The requester packs and removes it. */
export const snapshotSchema = z.object({
  facts: storeFactsSchema,
  copy: z.object({ name: z.enum(["store.db", "store.dump"]), file: z.string() }),
  /** Remove after packing. */
  folder: z.string(),
});
export type StoreSnapshot = z.infer<typeof snapshotSchema>;

export interface SnapshotDeps {
  readonly dataDir: string;
  readonly location: StoreLocation;
  readonly db: Kysely<Database>;
  readonly ids: IdSource;
}

/** @throws StartError */
export async function takeSnapshot({ dataDir, location, db, ids }: SnapshotDeps): Promise<StoreSnapshot> {
  const folder = join(snapshotsFolder(dataDir), ids.next("request"));
  await mkdir(folder, { recursive: true, mode: 0o700 });
  try {
    const facts = await readStoreFacts(db);
    return { facts, copy: await copyStore(db, location, folder), folder };
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    if (error instanceof StartError) throw error;
    const why = error instanceof Error ? error.message : String(error);
    throw new StartError(
      `The store could not be copied to ${snapshotsFolder(dataDir)}: ${why}. Check that there is enough disk space.`,
    );
  }
}

/** @throws StartError for a store of a newer version. */
export function readStoreFacts(db: Kysely<Database>): Promise<StoreFacts> {
  return new BackupStore(db).facts();
}

/** Removes abandoned snapshots. The caller holds the data folder and has just started. */
export async function removeSnapshots(dataDir: string): Promise<void> {
  await rm(snapshotsFolder(dataDir), { recursive: true, force: true });
}

function snapshotsFolder(dataDir: string): string {
  return join(dataDir, "snapshots");
}
