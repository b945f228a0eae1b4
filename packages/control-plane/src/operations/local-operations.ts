import { existsSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { rfc3339, systemClock } from "@fairlead/protocol/clock";
import { systemIds } from "@fairlead/protocol/ids";
import { adminClient } from "../admin/admin-client.ts";
import { LOG_LEVEL_PATH, SNAPSHOT_PATH } from "../admin/admin-socket.ts";
import type { OnProgress } from "../backup/backup-file.ts";
import { backupBeforeMigration } from "../backup/migration-backup.ts";
import { packSnapshot, removeOutdated } from "../backup/pack-snapshot.ts";
import { type RestoreReport, restoreBackup } from "../backup/restore.ts";
import { type Snapshot, snapshotSchema, takeSnapshot } from "../backup/snapshot.ts";
import type { Config } from "../config.ts";
import { makeDataDir } from "../db/data-dir.ts";
import { type MigrationState, migrate, migrationState } from "../db/migrate.ts";
import { type OpenedDatabase, openDatabase, type StoreLocation } from "../db/open.ts";
import { acquireServerLock } from "../db/server-lock.ts";
import { storeLocation } from "../db/store-location.ts";
import { holdStore } from "../db/store-lock.ts";
import {
  type ForgetReport,
  forgetSealed,
  type MasterKeyChange,
  type RotationReport,
  rotateMasterKey,
} from "../master-key/rotate-master-key.ts";
import { StartError } from "../start-error.ts";
import { examine, type Finding } from "./doctor.ts";
import { type LogLevelAnswer, type LogLevelInput, logLevelAnswerSchema } from "./operations-admin.ts";

/** The operator's work on an installation from its own machine. Every failure is a `StartError` or a `DomainError` in words for them. */
export interface LocalOperations {
  backup(options: BackupOptions): Promise<BackupReport>;
  /** The server must be stopped. */
  restore(options: RestoreInput): Promise<RestoreReport>;
  /** How the store stands to this version. Reads only. */
  migrations(): Promise<MigrationState>;
  /** Brings it there, with a backup before; the server must be stopped. @returns `missing`: what was applied. */
  migrate(): Promise<MigrationState>;
  /** A new master key, and everything sealed anew; the server must be stopped. */
  rotateMasterKey(): Promise<RotationReport>;
  /** Gives up what a lost master key sealed, and begins with a new one; the server must be stopped. */
  forgetSealed(): Promise<ForgetReport>;
  /** Looks at everything that the server stands on. Changes nothing. */
  doctor(): Promise<readonly Finding[]>;
  /** Of the running server. */
  setLogLevel(input: LogLevelInput): Promise<LogLevelAnswer>;
}

export interface BackupOptions {
  /** A folder that is there, or ends with a slash: the backup gets a name of its own in it. Else the file. */
  readonly to: string;
  /** How many backups of this installation the folder keeps; null: all. */
  readonly keep: number | null;
  /** Named in the backup as worth keeping too. */
  readonly configFile: string | null;
  readonly onProgress: OnProgress;
}

export interface BackupReport {
  readonly file: string;
  readonly bytes: number;
  readonly createdAt: string;
  readonly sha256: string;
  readonly epoch: string;
  /** What a server needs besides, and the backup does not hold. */
  readonly alsoKeep: readonly string[];
  /** Older backups that went. */
  readonly removed: readonly string[];
}

export interface RestoreInput {
  readonly file: string;
  readonly dryRun: boolean;
  readonly onProgress: OnProgress;
}

const clock = systemClock;
const ids = systemIds(() => clock.now());

export function openLocalOperations(config: Config): LocalOperations {
  return {
    backup: (options) => backup(config, options),
    restore: (input) => alone(config, () => restoreBackup({ config, clock, ids, ...input })),
    migrations: () => onStore(config, ({ db }) => migrationState(db)),
    migrate: () => alone(config, () => onStore(config, (opened, location) => migrateStore(config, opened, location))),
    rotateMasterKey: () => changeMasterKey(config, rotateMasterKey),
    forgetSealed: () => changeMasterKey(config, forgetSealed),
    doctor: () => examine(config, clock),
    setLogLevel: (input) => askServer(config, (call) => call(LOG_LEVEL_PATH, input, logLevelAnswerSchema)),
  };
}

async function backup(config: Config, options: BackupOptions): Promise<BackupReport> {
  const { to, keep, configFile, onProgress } = options;
  const isFolder = to.endsWith("/") || (existsSync(to) && statSync(to).isDirectory());
  if (keep !== null && !isFolder)
    throw new StartError("Only backups in a folder can be kept to a number: name a folder.");
  const target = isFolder ? { folder: resolve(to) } : { file: resolve(to) };
  if ("file" in target && !existsSync(dirname(target.file))) {
    throw new StartError(`There is no folder ${dirname(target.file)}.`);
  }
  const { masterKeyFile, server } = config;
  const outside = [configFile, masterKeyFile, server.tls?.certFile, server.tls?.keyFile];
  const alsoKeep = outside.flatMap((path) => (path === null || path === undefined ? [] : [resolve(path)]));
  const createdAt = rfc3339(clock.now());
  const snapshot = await snapshotOf(config);
  const packed = await packSnapshot({ snapshot, createdAt, alsoKeep, target, onProgress });
  const { installationId, epoch, file } = packed.manifest;
  const removed = "folder" in target && keep !== null ? await removeOutdated(target.folder, installationId, keep) : [];
  return { file: packed.file, bytes: packed.bytes, createdAt, sha256: file.sha256, epoch, alsoKeep, removed };
}

/** By the running server; where none holds the data folder, by ourselves. */
async function snapshotOf(config: Config): Promise<Snapshot> {
  makeDataDir(config.dataDir);
  const lock = acquireServerLock(config.dataDir);
  if (lock === null) return adminClient(config.dataDir, clock)(SNAPSHOT_PATH, {}, snapshotSchema);
  try {
    refuseOtherUser(config.dataDir);
    return await onStore(config, (opened, location) =>
      takeSnapshot({ dataDir: config.dataDir, location, db: opened.db, ids }),
    );
  } finally {
    lock.release();
  }
}

async function migrateStore(config: Config, { db }: OpenedDatabase, location: StoreLocation): Promise<MigrationState> {
  const state = await migrationState(db);
  await backupBeforeMigration({ ...config, location, db, clock });
  await migrate(db, { clock });
  return state;
}

/** Of a store of this version: sealed places of an older one may be others. */
async function changeMasterKey<T>(config: Config, change: (how: MasterKeyChange) => Promise<T>): Promise<T> {
  const { masterKeyFile } = config;
  return alone(config, () =>
    onStore(config, async (opened, location) => {
      await migrateStore(config, opened, location);
      return change({ db: opened.db, masterKeyFile, clock, ids });
    }),
  );
}

async function onStore<T>(
  config: Config,
  work: (opened: OpenedDatabase, location: StoreLocation) => Promise<T>,
): Promise<T> {
  const location = storeLocation(config);
  if ("file" in location && !existsSync(location.file)) {
    throw new StartError(`There is no store in ${config.dataDir} yet; the first start makes it.`);
  }
  const opened = openStore(location);
  try {
    return await work(opened, location);
  } finally {
    await opened.close();
  }
}

function openStore(location: StoreLocation): OpenedDatabase {
  try {
    return openDatabase(location);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new StartError(`The store cannot be opened: ${why}. See docs/disaster.md.`);
  }
}

/** For what no server may see half done. @throws StartError while one runs */
async function alone<T>(config: Config, work: () => Promise<T>): Promise<T> {
  makeDataDir(config.dataDir);
  const lock = acquireServerLock(config.dataDir);
  if (lock === null) {
    throw new StartError(`A server runs on ${config.dataDir}. Stop it first (systemctl stop fairlead-control-plane).`);
  }
  try {
    refuseOtherUser(config.dataDir);
    const storeLock = await holdStore(config.database.url);
    try {
      return await work();
    } finally {
      storeLock.release();
    }
  } finally {
    lock.release();
  }
}

/** Files that another user leaves in the data folder, the server could not open. */
function refuseOtherUser(dataDir: string): void {
  const { uid } = statSync(dataDir);
  if (uid === process.getuid?.()) return;
  throw new StartError(`The data folder belongs to another user. Run this as that one: sudo -u '#${uid}' fairlead …`);
}

async function askServer<T>(config: Config, ask: (call: ReturnType<typeof adminClient>) => Promise<T>): Promise<T> {
  makeDataDir(config.dataDir);
  const lock = acquireServerLock(config.dataDir);
  if (lock === null) return ask(adminClient(config.dataDir, clock));
  lock.release();
  throw new StartError(`No server runs on ${config.dataDir}; this is for a running one.`);
}
