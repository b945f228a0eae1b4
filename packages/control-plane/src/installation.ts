import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import type { Clock } from "@fairlead/protocol/clock";
import type { IdSource } from "@fairlead/protocol/ids";
import type { Kysely } from "kysely";
import { AdminService } from "./admin/admin-service.ts";
import { AuditService } from "./audit/audit-service.ts";
import { type KeyRing, openKeyRing } from "./auth/key-ring.ts";
import { KeyRingStore } from "./auth/key-ring-store.ts";
import { createMasterKey, deriveSecret, type MasterKey, readMasterKey, settleMasterKey } from "./auth/master-key.ts";
import { aesSealer, type SecretSealer } from "./auth/sealer.ts";
import { TokenService } from "./auth/tokens.ts";
import { backupBeforeMigration } from "./backup/migration-backup.ts";
import { refuseHalfRestored } from "./backup/restore-mark.ts";
import type { Config } from "./config.ts";
import { ensureInstallation, type InstallationRecord } from "./db/installation-store.ts";
import { migrate } from "./db/migrate.ts";
import { openDatabase } from "./db/open.ts";
import type { WriteTogether } from "./db/opened-handle.ts";
import type { Database } from "./db/schema.ts";
import type { OnStatement } from "./db/statement-watch.ts";
import { storeLocation } from "./db/store-location.ts";
import { OneTimeLinkService } from "./one-time-links/one-time-link-service.ts";
import { SessionService } from "./users/session-service.ts";
import { UserService } from "./users/user-service.ts";

/** What the server and the offline administrator both stand on: the migrated store, the keys, the users. */
export interface Installation {
  readonly record: InstallationRecord;
  readonly db: Kysely<Database>;
  readonly longReads: Kysely<Database>;
  readonly writes: Kysely<Database>;
  readonly writeTogether: WriteTogether;
  readonly sealer: SecretSealer;
  readonly keyRing: KeyRing;
  readonly tokens: TokenService;
  readonly users: UserService;
  readonly sessions: SessionService;
  /** Signs the sign-in's cookies, and hashes for nobody. */
  readonly signInSecret: string;
  readonly audit: AuditService;
  readonly oneTimeLinks: OneTimeLinkService;
  readonly admin: AdminService;
  /** The backup that was taken before the store was brought to this program's schema; null where there was nothing to do. */
  readonly migrationBackup: string | null;
  /** Resolves if the store answers. */
  ping(): Promise<void>;
  close(): Promise<void>;
}

export interface Ports {
  readonly clock: Clock;
  readonly ids: IdSource;
}

/** The caller holds the server lock. @throws StartError */
export async function openInstallation(
  config: Pick<Config, "dataDir" | "masterKeyFile" | "database">,
  ports: Ports & { readonly publicUrl: string; readonly onStatement?: OnStatement },
): Promise<Installation> {
  refuseHalfRestored(config.dataDir);
  const location = storeLocation(config);
  // A migration takes as long as it takes, before anybody waits.
  let migrated = false;
  const opened = openDatabase(location, (statement) => {
    if (migrated) ports.onStatement?.(statement);
  });
  try {
    const { clock, ids } = ports;
    const { db } = opened;
    const backup = await backupBeforeMigration({ ...config, location, db, clock });
    await migrate(db, { clock });
    migrated = true;
    const fresh = { id: ids.next("installation"), epoch: ids.next("storeEpoch"), createdAt: clock.now() };
    const record = await ensureInstallation(db, fresh);
    const store = new KeyRingStore(db);
    const masterKey = await openMasterKey(store, config.masterKeyFile);
    const sealer = aesSealer(masterKey);
    const keyRing = await openKeyRing({ ...ports, store, sealer });
    const tokens = new TokenService({ keyRing, installationId: record.id, clock });
    const audit = new AuditService(ports);
    const users = new UserService({ ...ports, db, audit, tokens, randomBytes });
    const sessions = new SessionService({ db, audit, clock, randomBytes });
    const oneTimeLinks = new OneTimeLinkService({ ...ports, db, randomBytes });
    const admin = new AdminService({ db, users, oneTimeLinks, audit, keyRing, publicUrl: ports.publicUrl });
    const signInSecret = deriveSecret(masterKey, "sign-in");
    const made = { audit, record, sealer, keyRing, tokens, users, sessions, signInSecret, oneTimeLinks, admin };
    return { ...opened, ...made, migrationBackup: backup };
  } catch (error) {
    await opened.close();
    throw error;
  }
}

/** A master key is made only for a store that has sealed nothing yet: for any other, a missing file is a loss to tell of. */
async function openMasterKey(store: KeyRingStore, masterKeyFile: string): Promise<MasterKey> {
  const keys = await store.list();
  const signing = keys.find(({ retiredAt }) => retiredAt === null);
  if (signing) return settleMasterKey(masterKeyFile, signing.masterKeyId);
  if (keys.length === 0 && !existsSync(masterKeyFile)) createMasterKey(masterKeyFile);
  return readMasterKey(masterKeyFile);
}
