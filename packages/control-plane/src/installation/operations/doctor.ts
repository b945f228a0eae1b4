import { existsSync } from "node:fs";
import { connect } from "node:net";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { ProxyServer } from "@fairlead/wire/proxy/proxy-rules";
import type { Config } from "../config/config.ts";
import { acquireServerLock } from "../db/postgres/server-lock.ts";
import { trustAuthorities } from "../outgoing/trust-authorities.ts";
import { type DoctorFinding, fail, found, ok, skipped } from "./finding.ts";
import { checkCertificate, checkDataFolder, checkDisk } from "./machine-checks.ts";
import { checkPort, checkPublicUrl } from "./network-checks.ts";
import { checkServer, type ServerSurroundings } from "./server-check.ts";
import { checkStore } from "./store-checks.ts";

/** Doctor checks of outgoing connections. */

const CONNECT_MS = 5000;

/** Only that the proxies respond; which hosts they allow is not checked. */
export async function checkProxies({ proxy }: Config): Promise<DoctorFinding> {
  const check = "proxy";
  const { rules } = proxy;
  // Later checks see the same environment as the server.
  trustAuthorities(proxy);
  const found = [
    ...new Map([rules.https, rules.http].flatMap((server) => (server ? [[server.url, server]] : []))).values(),
  ];
  if (found.length === 0) return skipped(check, "not set");
  for (const server of found) {
    const reason = await whyUnreachable(server);
    if (reason !== null) return fail(check, `${server.url} cannot be reached: ${reason}`);
  }
  const words = [
    rules.https && `https through ${named(rules.https)}`,
    rules.http && `http through ${named(rules.http)}`,
  ];
  return ok(check, words.filter((text) => text !== null).join(", "));
}

function named({ url, authorization }: ProxyServer): string {
  return authorization === null ? url : `${url} with a password`;
}

function whyUnreachable({ url }: ProxyServer): Promise<string | null> {
  const { hostname, port, protocol } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, "");
  const socket = connect({ host, port: Number(port) || (protocol === "https:" ? 443 : 80), timeout: CONNECT_MS });
  const { promise, resolve } = Promise.withResolvers<string | null>();
  socket.once("connect", () => resolve(null));
  socket.once("timeout", () => resolve(`no response within ${CONNECT_MS / 1000} seconds`));
  socket.once("error", (error) => resolve(error.message));
  return promise.finally(() => socket.destroy());
}

export type { DoctorFinding } from "./finding.ts";

/** Checks the server's configuration and environment, whether or not it runs. Changes nothing; every failure is a finding. */
export async function examineServer(
  config: Config,
  clock: Clock,
  surroundings: ServerSurroundings = { configFile: null },
): Promise<readonly DoctorFinding[]> {
  const folder = await found("data folder", () => checkDataFolder(config));
  // The server cannot use files that belong to another user.
  if (folder.status === "fail") return [settings, folder];
  const runs = isRunning(config.dataDir);
  return [
    settings,
    folder,
    await found("server", () => checkServer(config, runs, surroundings)),
    await found("disk", () => checkDisk(config)),
    ...(await checkStore(config, clock, runs)),
    await found("proxy", () => checkProxies(config)),
    await found("certificate", () => checkCertificate(config, clock)),
    await found("platform host", () => checkPort(config, "platform", runs)),
    await found("inference host", () => checkPort(config, "inference", runs)),
    ...(runs ? await checkPublicUrls(config, clock) : []),
  ];
}

/** Invalid settings are reported before this runs. */
const settings = ok("settings", "are valid");

async function checkPublicUrls(config: Config, clock: Clock): Promise<readonly DoctorFinding[]> {
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
