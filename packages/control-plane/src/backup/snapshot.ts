import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { IdSource } from "@fairlead/protocol/ids";
import type { Kysely } from "kysely";
import { z } from "zod";
import type { StoreLocation } from "../db/open.ts";
import type { Database } from "../db/schema.ts";
import { copyStore } from "../db/store-copy.ts";
import { StartError } from "../start-error.ts";
import { BackupStore } from "./backup-store.ts";
import { type StoreFacts, storeFactsSchema } from "./manifest.ts";

/** A copy of the store in the data folder, where a server under systemd may write; whoever asked for it packs it and removes it. */
export const snapshotSchema = z.object({
  facts: storeFactsSchema,
  copy: z.object({ name: z.enum(["store.db", "store.dump"]), file: z.string() }),
  /** To be removed when it has been packed. */
  folder: z.string(),
});
export type Snapshot = z.infer<typeof snapshotSchema>;

export interface SnapshotDeps {
  readonly dataDir: string;
  readonly location: StoreLocation;
  readonly db: Kysely<Database>;
  readonly ids: IdSource;
}

/** @throws StartError */
export async function takeSnapshot({ dataDir, location, db, ids }: SnapshotDeps): Promise<Snapshot> {
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
      `The store could not be copied into ${snapshotsFolder(dataDir)}: ${why}. Is there room for it?`,
    );
  }
}

/** @throws StartError for a store that a newer program has written. */
export function readStoreFacts(db: Kysely<Database>): Promise<StoreFacts> {
  return new BackupStore(db).facts();
}

/** Those that nobody will fetch any more: the caller holds the data folder, and has only begun. */
export async function removeSnapshots(dataDir: string): Promise<void> {
  await rm(snapshotsFolder(dataDir), { recursive: true, force: true });
}

function snapshotsFolder(dataDir: string): string {
  return join(dataDir, "snapshots");
}
