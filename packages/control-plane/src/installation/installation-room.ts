import { randomBytes } from "node:crypto";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { IdSource } from "@fairlead/protocol/values/ids";
import { AuditService } from "../access/audit/audit-service.ts";
import { openKeyRing } from "../access/auth/sealing/key-ring.ts";
import { KeyRingStore } from "../access/auth/sealing/key-ring-store.ts";
import { deriveSecret } from "../access/auth/sealing/master-key.ts";
import { openMasterKey } from "../access/auth/sealing/open-master-key.ts";
import { aesSealer } from "../access/auth/sealing/sealer.ts";
import { TokenService } from "../access/auth/tokens/tokens.ts";
import { OneTimeLinkService } from "../people/one-time-links/one-time-link-service.ts";
import { SessionService } from "../people/users/session-service.ts";
import { UserService } from "../people/users/user-service.ts";
import { AdminService } from "./admin/admin-service.ts";
import { backupBeforeMigration } from "./backup/migration-backup.ts";
import { refuseHalfRestored } from "./backup/restore-mark.ts";
import { aloneOn, type ServerMembership } from "./cluster/membership.ts";
import type { Config } from "./config/config.ts";
import { ensureInstallation } from "./db/installation-store.ts";
import { migrate } from "./db/migrations/migrate.ts";
import { openDatabase } from "./db/open.ts";
import type { OnStatement } from "./db/statement-watch.ts";
import { storeLocation } from "./db/store-location.ts";
import type { Log } from "./process/log.ts";

export interface Ports {
  readonly clock: Clock;
  readonly ids: IdSource;
}

export interface InstallationPorts extends Ports {
  readonly publicUrl: string;
  readonly onStatement?: OnStatement;
  /** Logs migrations. */
  readonly log?: Log;
  /** The caller's; omitted if no other server can be running. */
  readonly membership?: ServerMembership;
}

/** Shared by the server and the offline administration: the migrated store, the keys, the users. */
export type Installation = Awaited<ReturnType<typeof openInstallation>>;

/** The caller must hold the server lock and be registered in the store. @throws StartError */
export async function openInstallation(
  config: Pick<Config, "dataDir" | "masterKeyFile" | "database">,
  ports: InstallationPorts,
) {
  refuseHalfRestored(config.dataDir);
  const location = storeLocation(config);
  // Migrations have no time limit; nothing is served yet.
  let migrated = false;
  const { membership = aloneOn(ports.ids.next("incarnation")) } = ports;
  const opened = openDatabase(location, {
    fence: membership.fence,
    onStatement: (statement) => {
      if (migrated) ports.onStatement?.(statement);
    },
  });
  try {
    const { clock, ids } = ports;
    const { db, maintenance } = opened;
    const backup = await backupBeforeMigration({ ...config, location, db, clock });
    await migrate(maintenance, { clock });
    migrated = true;
    const fresh = { id: ids.next("installation"), epoch: ids.next("storeEpoch"), createdAt: clock.now() };
    if (backup !== null) {
      ports.log?.info({ migrationBackup: backup }, "migrated the store to this version after taking a backup");
    }
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
    // Only signs the sign-in cookies.
    const signInSecret = deriveSecret(masterKey, "sign-in");
    const made = { audit, record, sealer, keyRing, tokens, users, sessions, signInSecret, oneTimeLinks, admin };
    return { ...opened, ...made, membership };
  } catch (error) {
    await opened.close();
    throw error;
  }
}
