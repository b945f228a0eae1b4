import { systemClock } from "@fairlead/protocol/values/clock";
import { systemIds } from "@fairlead/protocol/values/ids";
import type { BillingService } from "../../money/billing/billing-service.ts";
import type { Config } from "../config/config.ts";
import { acquireServerLock, type ServerLock } from "../db/postgres/server-lock.ts";
import { storeLocation } from "../db/store-location.ts";
import { type Installation, openInstallation } from "../installation-room.ts";
import { createLog } from "../process/log.ts";
import { LogLevelSwitch } from "../process/log-level.ts";
import { type AdminSocket, openAdminSocket } from "./admin-socket.ts";
import { openMoneyOffline } from "./local-admin.ts";
import { createStore } from "./new-installation.fixture.ts";
import { OperationsAdmin } from "./operations-admin.ts";

const ports = { clock: systemClock, ids: systemIds(() => systemClock.now()) };

interface Parts {
  readonly lock: ServerLock;
  readonly installation: Installation;
  readonly billing: BillingService;
  readonly socket: AdminSocket;
}

/** What a running server holds, as far as administration goes. */
export class Running {
  readonly installation: Installation;
  readonly billing: BillingService;
  readonly #parts: Parts;

  private constructor(parts: Parts) {
    this.installation = parts.installation;
    this.billing = parts.billing;
    this.#parts = parts;
  }

  static async start(config: Config): Promise<Running> {
    await createStore(config);
    const lock = acquireServerLock(config.dataDir);
    if (!lock) throw new Error("the lock is held");
    const installation = await openInstallation(config, { ...ports, publicUrl: "https://fairlead.example.org" });
    const { admin } = installation;
    const log = createLog({ level: "silent" });
    const { billing, money } = openMoneyOffline(config, ports, installation);
    const operations = new OperationsAdmin({
      ...ports,
      ...installation,
      dataDir: config.dataDir,
      location: storeLocation(config),
      installationId: installation.record.id,
      logLevel: new LogLevelSwitch(log),
    });
    const socket = await openAdminSocket({ ...ports, dataDir: config.dataDir, admin, money, operations, log });
    return new Running({ lock, installation, billing, socket });
  }

  async stop(): Promise<void> {
    const { socket, billing, installation, lock } = this.#parts;
    await socket.close();
    await billing.close();
    await installation.close();
    lock.release();
  }
}
