import type { Money } from "../../money/money-room.ts";
import type { Ground } from "../../room.ts";
import { storeLocation } from "../db/store-location.ts";
import type { Installation } from "../installation-room.ts";
import type { Log } from "../process/log.ts";
import { LogLevelSwitch } from "../process/log-level.ts";
import { openAdminSocket } from "./admin-socket.ts";
import { MoneyAdmin } from "./money-admin.ts";
import { OperationsAdmin } from "./operations-admin.ts";

interface AdminOptions extends Ground {
  readonly money: Money;
}

/** Local administration over `<data>/admin.sock`. */
export async function openAdmin({ config, log, clock, ids, installation, money }: AdminOptions) {
  const { dataDir } = config;
  const { admin, record, db, audit } = installation;
  const operations = new OperationsAdmin({
    clock,
    ids,
    db,
    audit,
    dataDir,
    location: storeLocation(config),
    installationId: record.id,
    logLevel: new LogLevelSwitch(log),
  });
  return openAdminSocket({ ids, log, dataDir, admin, money: new MoneyAdmin(money), operations });
}

/** Creates a new link on each start, so that a lost or leaked one is useless. Written to the server's log. */
export async function linkForFirstStart({ users, admin }: Installation, log: Log): Promise<string | null> {
  if (await users.hasAny()) return null;
  const { url, expiresAt } = await admin.setUpLink("server");
  log.info({ expiresAt }, `no users yet; create the first administrator account at ${url}`);
  return url;
}
