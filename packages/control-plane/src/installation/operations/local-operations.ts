import { existsSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { rfc3339, systemClock } from "@fairlead/protocol/values/clock";
import { systemIds } from "@fairlead/protocol/values/ids";
import { type WhoisInput, type WhoisReport, whoisKey } from "../../access/keys/key-whois-service.ts";
import { adminClient } from "../admin/admin-client.ts";
import { LOG_LEVEL_PATH, SNAPSHOT_PATH } from "../admin/admin-socket.ts";
import { type LogLevelAnswer, type LogLevelInput, logLevelAnswerSchema } from "../admin/operations-admin.ts";
import type { OnProgress } from "../backup/backup-file.ts";
import { backupBeforeMigration } from "../backup/migration-backup.ts";
import { packSnapshot, removeOutdated } from "../backup/pack-snapshot.ts";
import { type RestoreReport, restoreBackup } from "../backup/restore.ts";
import { type StoreSnapshot, snapshotSchema, takeSnapshot } from "../backup/snapshot.ts";
import { joinForNow } from "../cluster/join-for-now.ts";
import type { ServerMembership } from "../cluster/membership.ts";
import type { Config } from "../config/config.ts";
import { makeDataDir } from "../db/data-dir.ts";
import type { Fence } from "../db/fence.ts";
import { type MigrationState, migrate, migrationState } from "../db/migrations/migrate.ts";
import { type OpenedDatabase, openDatabase, type StoreLocation } from "../db/open.ts";
import { acquireServerLock } from "../db/postgres/server-lock.ts";
import { storeLocation } from "../db/store-location.ts";
import { requireStore } from "../db/store-presence.ts";
import {
  type ForgetReport,
  forgetSealed,
  type MasterKeyChange,
  type RotationReport,
  rotateMasterKey,
} from "../master-key/rotate-master-key.ts";
import { StartError } from "../process/start-error.ts";
import { type DoctorFinding, examineServer } from "./doctor.ts";
import type { ServerSurroundings } from "./server-check.ts";

export type { WhoisReport } from "../../access/keys/key-whois-service.ts";

/** Operations on an installation from its own machine. Every failure is a `StartError` or a `DomainError`. */
export interface LocalOperations {
  backup(options: BackupOptions): Promise<BackupReport>;
  /** The server must be stopped. */
  restore(options: RestoreInput): Promise<RestoreReport>;
  /** Compares the store's schema with this version. Reads only. */
  migrations(): Promise<MigrationState>;
  /** Migrates the store after a backup; the server must be stopped. @returns `missing`: the applied migrations. */
  migrate(): Promise<MigrationState>;
  /** Rotates the master key; the server must be stopped. */
  rotateMasterKey(): Promise<RotationReport>;
  /** Discards what a lost master key sealed, and starts with a new key; the server must be stopped. */
  forgetSealed(): Promise<ForgetReport>;
  /** Checks the server's configuration and environment. Changes nothing. */
  doctor(surroundings: ServerSurroundings): Promise<readonly DoctorFinding[]>;
  /** The owner of a project key, and why it is rejected. Reads only. */
  whoisKey(input: WhoisInput): Promise<WhoisReport>;
  /** Of the running server. */
  setLogLevel(input: LogLevelInput): Promise<LogLevelAnswer>;
}

export interface BackupOptions {
  /** An existing folder, or a path with a trailing slash: the backup gets a generated name. Otherwise the file. */
  readonly to: string;
  /** Number of backups of this installation to keep in the folder; null: all. */
  readonly keep: number | null;
  /** Named in the report as needing a backup as well. */
  readonly configFile: string | null;
  readonly onProgress: OnProgress;
}

export interface BackupReport {
  readonly file: string;
  readonly bytes: number;
  readonly createdAt: string;
  readonly sha256: string;
  readonly epoch: string;
  /** What a server needs that the backup does not contain. */
  readonly alsoKeep: readonly string[];
  /** Removed older backups. */
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
    restore: (input) => restore(config, input),
    migrations: () => onStore(config, ({ db }) => migrationState(db)),
    migrate: () => aloneOnStore(config, (opened, location) => migrateStore(config, opened, location)),
    rotateMasterKey: () => changeMasterKey(config, rotateMasterKey),
    forgetSealed: () => changeMasterKey(config, forgetSealed),
    doctor: (surroundings) => examineServer(config, clock, surroundings),
    whoisKey: (input) => onStore(config, ({ db }) => whoisKey(db, input, clock)),
    setLogLevel: (input) => askServer(config, (call) => call(LOG_LEVEL_PATH, input, logLevelAnswerSchema)),
  };
}

async function backup(config: Config, options: BackupOptions): Promise<BackupReport> {
  const { to, keep, configFile, onProgress } = options;
  const isFolder = to.endsWith("/") || (existsSync(to) && statSync(to).isDirectory());
  if (keep !== null && !isFolder) throw new StartError("--keep requires a folder as the target of the backup.");
  const target = isFolder ? { folder: resolve(to) } : { file: resolve(to) };
  if ("file" in target && !existsSync(dirname(target.file))) {
    throw new StartError(`The folder ${dirname(target.file)} does not exist.`);
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

/** By the running server or, if none is running, directly. */
async function snapshotOf(config: Config): Promise<StoreSnapshot> {
  await requireStore(config);
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

/** The only command that may start with an empty folder. */
async function restore(config: Config, input: RestoreInput): Promise<RestoreReport> {
  makeDataDir(config.dataDir);
  return alone(config, () => restoreBackup({ config, clock, ids, ...input }));
}

async function migrateStore(config: Config, opened: OpenedDatabase, location: StoreLocation): Promise<MigrationState> {
  const { db, maintenance } = opened;
  const state = await migrationState(db);
  await backupBeforeMigration({ ...config, location, db, clock });
  await migrate(maintenance, { clock });
  return state;
}

/** Only for a store of this version, because older ones may seal other columns. */
async function changeMasterKey<T>(config: Config, change: (how: MasterKeyChange) => Promise<T>): Promise<T> {
  const { masterKeyFile } = config;
  return aloneOnStore(config, async (opened, location) => {
    await migrateStore(config, opened, location);
    return change({ db: opened.db, masterKeyFile, clock, ids });
  });
}

type StoreWork<T> = (opened: OpenedDatabase, location: StoreLocation) => Promise<T>;

async function aloneOnStore<T>(config: Config, work: StoreWork<T>): Promise<T> {
  await requireStore(config);
  return alone(config, ({ fence }) => onStore(config, work, fence));
}

async function onStore<T>(config: Config, work: StoreWork<T>, fence: Fence | null = null): Promise<T> {
  await requireStore(config);
  const location = storeLocation(config);
  const opened = openStore(location, fence);
  try {
    return await work(opened, location);
  } finally {
    await opened.close();
  }
}

function openStore(location: StoreLocation, fence: Fence | null): OpenedDatabase {
  try {
    return openDatabase(location, { fence });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new StartError(`The store cannot be opened: ${why}. See docs/disaster.md.`);
  }
}

/** For operations that require a stopped server. @throws StartError while one is running */
async function alone<T>(config: Config, work: (membership: ServerMembership) => Promise<T>): Promise<T> {
  const lock = acquireServerLock(config.dataDir);
  if (lock === null) {
    throw new StartError(
      `A server is running on ${config.dataDir}. Stop it first (systemctl stop fairlead-control-plane).`,
    );
  }
  try {
    refuseOtherUser(config.dataDir);
    const membership = await joinForNow(config);
    try {
      return await work(membership);
    } finally {
      await membership.leave();
    }
  } finally {
    lock.release();
  }
}

/** The server could not open files of another user in the data folder. */
function refuseOtherUser(dataDir: string): void {
  const { uid } = statSync(dataDir);
  if (uid === process.getuid?.()) return;
  throw new StartError(
    `The data folder belongs to another user. Run this command as that user: sudo -u '#${uid}' fairlead …`,
  );
}

async function askServer<T>(config: Config, ask: (call: ReturnType<typeof adminClient>) => Promise<T>): Promise<T> {
  await requireStore(config);
  const lock = acquireServerLock(config.dataDir);
  if (lock === null) return ask(adminClient(config.dataDir, clock));
  lock.release();
  throw new StartError(`No server is running on ${config.dataDir}. This command requires a running server.`);
}
