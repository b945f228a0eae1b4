import { systemClock } from "@fairlead/protocol/values/clock";
import { systemIds } from "@fairlead/protocol/values/ids";
import type { Config } from "../config/config.ts";
import { holdDataDir } from "../db/data-dir.ts";
import { requireStore } from "../db/store-presence.ts";
import { openInstallation } from "../installation-room.ts";
import { type LocalAdmin, openLocalAdmin } from "./local-admin.ts";

/** Creates the data folder, the store and the master key, as the first start of a server does. Does nothing where there is a store. */
export async function createStore(config: Config): Promise<void> {
  const exists = await requireStore(config).then(
    () => true,
    () => false,
  );
  if (exists) return;
  const lock = await holdDataDir(config.dataDir);
  try {
    const ids = systemIds(() => systemClock.now());
    const publicUrl = "https://fairlead.example.org";
    await (await openInstallation(config, { clock: systemClock, ids, publicUrl })).close();
  } finally {
    lock.release();
  }
}

/** Local administration of a store that may have to be created first. */
export async function openNewAdmin(config: Config): Promise<LocalAdmin> {
  await createStore(config);
  return openLocalAdmin(config);
}
