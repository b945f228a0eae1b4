import { existsSync, statSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, rfc3339 } from "@fairlead/protocol/clock";
import type { Config } from "../config.ts";
import { readCertificate } from "../http/certificate-files.ts";
import { type Finding, fail, ok, skipped, warn } from "./finding.ts";

/** What the doctor sees of the machine: folders, files, disk. */

const OTHERS_MAY = 0o077;
const GIGABYTE = 1_000_000_000;
const DAY_MS = 24 * 3_600_000;
const CERTIFICATE_DAYS = 14;

export function checkDataFolder({ dataDir }: Config): Finding {
  const check = "data folder";
  if (!existsSync(dataDir)) return warn(check, `${dataDir} is not there yet; the first start makes it`);
  const { mode, uid } = statSync(dataDir);
  if (uid !== process.getuid?.()) {
    return fail(check, `${dataDir} belongs to user ${uid}; run this as that one: sudo -u '#${uid}' fairlead doctor`);
  }
  if ((mode & OTHERS_MAY) !== 0) return fail(check, `others can use ${dataDir}; run: chmod 700 ${dataDir}`);
  return ok(check, `${dataDir} is for its owner only`);
}

/** A backup, and an upgrade, need as much again as the store has. */
export async function checkDisk({ dataDir }: Config): Promise<Finding> {
  const check = "disk";
  if (!existsSync(dataDir)) return skipped(check, "there is no data folder yet");
  const { bavail, bsize } = await statfs(dataDir);
  const free = bavail * bsize;
  const file = join(dataDir, "fairlead.db");
  const store = existsSync(file) ? statSync(file).size : 0;
  const words = `${(free / GIGABYTE).toFixed(1)} GB free, the store has ${(store / GIGABYTE).toFixed(1)} GB`;
  if (free < GIGABYTE / 5) return fail(check, `${words}; make room: without it nothing can be written`);
  if (free < GIGABYTE || free < 1.5 * store)
    return warn(check, `${words}; a backup needs as much again as the store has`);
  return ok(check, words);
}

export function checkCertificate({ server: { tls, publicUrl, trustedProxies } }: Config, clock: Clock): Finding {
  const check = "certificate";
  if (tls === undefined) return checkProxy(publicUrl, trustedProxies);
  const { expiresAt, names } = readCertificate(tls);
  const days = Math.floor((expiresAt - clock.now()) / DAY_MS);
  const words = `${tls.certFile} is for ${names}, until ${rfc3339(expiresAt)}`;
  if (days < 0) return fail(check, `${words}: it has run out; renew it`);
  return days < CERTIFICATE_DAYS ? warn(check, `${words}: ${days} days left; renew it`) : ok(check, words);
}

function checkProxy(publicUrl: string | null, trustedProxies: readonly string[]): Finding {
  const check = "reverse proxy";
  if (publicUrl === null)
    return warn(check, "server.publicUrl is not set: only this machine can use the addresses given out");
  if (!publicUrl.startsWith("https:"))
    return warn(check, `${publicUrl} is plain http: others on the way can read along`);
  if (trustedProxies.length > 0) return ok(check, `clients' addresses are taken from ${trustedProxies.join(", ")}`);
  return warn(check, "server.trustedProxies is empty: all clients seem to come from the proxy; name its address there");
}
