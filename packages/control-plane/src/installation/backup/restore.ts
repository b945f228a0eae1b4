import { existsSync } from "node:fs";
import { chmod, link, mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { type Clock, rfc3339 } from "@fairlead/protocol/values/clock";
import type { IdSource } from "@fairlead/protocol/values/ids";
import type { Kysely } from "kysely";
import { OPERATOR } from "../../access/audit/audit.ts";
import { AuditService } from "../../access/audit/audit-service.ts";
import { readMasterKey } from "../../access/auth/sealing/master-key.ts";
import { migrate, refuseNewerStore } from "../db/migrations/migrate.ts";
import { openDatabase } from "../db/open.ts";
import { checkSqlite } from "../db/sqlite/copy-sqlite.ts";
import { copyStore, refillPostgres } from "../db/store-copy.ts";
import { storeLocation } from "../db/store-location.ts";
import type { Database } from "../db/tables/schema.ts";
import { StartError } from "../process/start-error.ts";
import { type OnProgress, syncFolder, type UnpackedBackup, unpackBackup } from "./backup-file.ts";
import { BackupStore } from "./backup-store.ts";
import type { Manifest } from "./manifest.ts";
import { beginRestore, endRestore } from "./restore-mark.ts";
import { type Recheck, type ReviewFacts, reviewRestore } from "./restore-review.ts";
import { RestoreStore } from "./restore-store.ts";

export interface RestoreOptions {
  readonly config: Parameters<typeof storeLocation>[0] & { readonly masterKeyFile: string };
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly file: string;
  /** Verifies and compares without changing anything. */
  readonly dryRun: boolean;
  readonly onProgress: OnProgress;
}

export interface RestoreReport {
  readonly manifest: Manifest;
  /** The new one; null for a dry run. */
  readonly epoch: string | null;
  /** Where the replaced store is. Null for a dry run, or if there was none. */
  readonly replaced: string | null;
  /** Sessions of the backup, all ended. */
  readonly sessions: number;
  readonly links: number;
  /** Null if the replaced store is missing or unreadable, so there is nothing to compare. */
  readonly recheck: readonly Recheck[] | null;
}

const UNPACKED = ".restore-";

/** The caller holds the locks of the data folder and the store. @throws StartError, with everything unchanged */
export async function restoreBackup(options: RestoreOptions): Promise<RestoreReport> {
  const { dataDir } = options.config;
  await removeUnpacked(dataDir);
  const folder = await mkdtemp(join(dataDir, UNPACKED));
  try {
    const unpacked = await unpackBackup({ ...options, folder });
    refuseOtherStore(options, unpacked.manifest);
    refuseNewerStore(new Set(unpacked.manifest.migrations));
    refuseOtherMasterKey(options, unpacked.manifest);
    return await ("url" in storeLocation(options.config) ? restorePostgres : restoreSqlite)(options, unpacked);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Left over from a killed restore. */
async function removeUnpacked(dataDir: string): Promise<void> {
  for (const name of await readdir(dataDir)) {
    if (name.startsWith(UNPACKED)) await rm(join(dataDir, name), { recursive: true, force: true });
  }
}

async function restoreSqlite(options: RestoreOptions, { manifest, storeFile }: UnpackedBackup): Promise<RestoreReport> {
  const faults = await checkSqlite(storeFile);
  if (faults.length > 0) throw new StartError(`The store in the backup is damaged: ${faults.join("; ")}.`);
  const opened = openDatabase({ file: storeFile });
  let prepared: Prepared;
  try {
    prepared = await prepare(options, opened.db);
  } finally {
    await opened.close();
  }
  const file = join(options.config.dataDir, "fairlead.db");
  const present = await presentFacts(file);
  const recheck = present === null ? null : reviewRestore(present, prepared.facts);
  const { sessions, links, epoch } = prepared;
  if (options.dryRun) return { manifest, epoch: null, replaced: null, sessions, links, recheck };
  const replaced = await replaceStore({ file, by: storeFile, at: options.clock.now() });
  return { manifest, epoch, replaced, sessions, links, recheck };
}

/** Dry run: a PostgreSQL store can be compared only while it exists. */
async function restorePostgres(
  options: RestoreOptions,
  { manifest, storeFile }: UnpackedBackup,
): Promise<RestoreReport> {
  const { config, clock, dryRun } = options;
  const url = config.database.url ?? "";
  const opened = openDatabase({ url });
  try {
    const present = await readFacts(opened.db);
    if (dryRun) return { manifest, epoch: null, replaced: null, sessions: 0, links: 0, recheck: null };
    const aside = await asideFolder(config.dataDir, clock.now());
    await copyStore(opened.db, { url }, aside);
    await beginRestore(config.dataDir, aside);
    await refillPostgres(opened.db, url, storeFile);
    const { facts, epoch, sessions, links } = await prepare(options, opened.maintenance);
    await endRestore(config.dataDir);
    return { manifest, epoch, replaced: aside, sessions, links, recheck: present && reviewRestore(present, facts) };
  } finally {
    await opened.close();
  }
}

interface Prepared {
  readonly epoch: string;
  readonly facts: ReviewFacts;
  readonly sessions: number;
  readonly links: number;
}

/** Migrates the backup's store to this schema and starts a new epoch. */
async function prepare({ clock, ids }: RestoreOptions, db: Kysely<Database>): Promise<Prepared> {
  await migrate(db, { clock });
  const { installationId } = await new BackupStore(db).facts();
  const audit = new AuditService({ clock, ids });
  const epoch = ids.next("storeEpoch");
  const ended = await db.transaction().execute(async (transaction) => {
    const resource = { type: "installation", id: installationId } as const;
    await audit.record(transaction, { actor: OPERATOR, action: "admin.restore", projectId: null, resource });
    return new RestoreStore(transaction).beginEpoch(epoch, clock.now());
  });
  return { epoch, facts: await new RestoreStore(db).facts(), ...ended };
}

function refuseOtherStore({ config, file }: RestoreOptions, { store }: Manifest): void {
  const own = "url" in storeLocation(config) ? "postgres" : "sqlite";
  if (store === own) return;
  const advice = own === "sqlite" ? "Set database.url to an empty database" : "Remove database.url";
  throw new StartError(
    `${file} contains a ${store} store, but the configured store is ${own}. ${advice} to restore it.`,
  );
}

/** A store whose secrets cannot be decrypted would only appear restored. */
function refuseOtherMasterKey({ config: { masterKeyFile } }: RestoreOptions, { masterKeyId }: Manifest): void {
  const { id } = readMasterKey(masterKeyFile);
  if (id === masterKeyId) return;
  throw new StartError(
    `The secrets in the backup are sealed with the master key ${masterKeyId}, but ${masterKeyFile} contains ${id}. Put the correct key ` +
      `there (a rotation keeps the previous one as ${basename(masterKeyFile)}.${masterKeyId}). If it is lost, see docs/disaster.md.`,
  );
}

/** @returns null if there is no store, or it cannot be read. */
async function presentFacts(file: string): Promise<ReviewFacts | null> {
  if (!existsSync(file)) return null;
  try {
    const opened = openDatabase({ file });
    try {
      return await readFacts(opened.db);
    } finally {
      // The last connection to close checkpoints the WAL, so that one file is the whole store.
      await opened.close();
    }
  } catch {
    return null;
  }
}

/** Reads a store as it is: it is about to be replaced, so it is not migrated. */
async function readFacts(db: Kysely<Database>): Promise<ReviewFacts | null> {
  try {
    return await new RestoreStore(db).facts();
  } catch {
    return null;
  }
}

/** At every moment, either the complete old or new store is in place. @returns where the old one is; null without one. */
async function replaceStore(how: {
  readonly file: string;
  readonly by: string;
  readonly at: number;
}): Promise<string | null> {
  const { file, by, at } = how;
  const dataDir = dirname(file);
  const aside = existsSync(file) ? await asideFolder(dataDir, at) : null;
  if (aside !== null) {
    await link(file, join(aside, basename(file)));
    // Left over only if the old store could not be opened. The new store must not use them.
    for (const end of ["-wal", "-shm"]) {
      if (existsSync(`${file}${end}`)) await rename(`${file}${end}`, join(aside, `${basename(file)}${end}`));
    }
    await syncFolder(aside);
  }
  await chmod(by, 0o600);
  await rename(by, file);
  await syncFolder(dataDir);
  return aside;
}

async function asideFolder(dataDir: string, at: number): Promise<string> {
  const folder = join(dataDir, `replaced-${rfc3339(at).replaceAll(/[-:.]/g, "")}`);
  await mkdir(folder, { mode: 0o700 });
  return folder;
}
