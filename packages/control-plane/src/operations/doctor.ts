import { existsSync } from "node:fs";
import type { Clock } from "@fairlead/protocol/clock";
import type { Config } from "../config.ts";
import { acquireServerLock } from "../db/server-lock.ts";
import { type Finding, found, ok } from "./finding.ts";
import { checkCertificate, checkDataFolder, checkDisk } from "./machine-checks.ts";
import { checkPort, checkPublicUrl } from "./network-checks.ts";
import { checkStore } from "./store-checks.ts";

export type { Finding } from "./finding.ts";

/** Looks at everything that a server stands on, whether it runs or not. Nothing is changed; what breaks is a finding. */
export async function examine(config: Config, clock: Clock): Promise<readonly Finding[]> {
  const folder = await found("data folder", () => checkDataFolder(config));
  // Files of another user's would keep the server out.
  if (folder.status === "fail") return [settings, folder];
  const runs = isRunning(config.dataDir);
  return [
    settings,
    folder,
    ok("server", runs ? "runs" : "does not run"),
    await found("disk", () => checkDisk(config)),
    ...(await checkStore(config)),
    await found("certificate", () => checkCertificate(config, clock)),
    await found("platform host", () => checkPort(config, "platform", runs)),
    await found("inference host", () => checkPort(config, "inference", runs)),
    ...(runs ? await checkPublicUrls(config, clock) : []),
  ];
}

/** Wrong ones are told before anybody gets here. */
const settings = ok("settings", "are valid");

async function checkPublicUrls(config: Config, clock: Clock): Promise<readonly Finding[]> {
  return [
    await found("server.publicUrl", () => checkPublicUrl(config, "platform", clock)),
    await found("server.modelsUrl", () => checkPublicUrl(config, "inference", clock)),
  ];
}

function isRunning(dataDir: string): boolean {
  if (!existsSync(dataDir)) return false;
  const lock = acquireServerLock(dataDir);
  lock?.release();
  return lock === null;
}
