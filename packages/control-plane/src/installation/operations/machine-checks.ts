import { existsSync, statSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, rfc3339 } from "@fairlead/protocol/values/clock";
import { readCertificate } from "../../http/listening/certificate-files.ts";
import type { Config } from "../config/config.ts";
import { type DoctorFinding, fail, ok, skipped, warn } from "./finding.ts";

/** Doctor checks of the machine: folders, files, disk. */

const OTHERS_MAY = 0o077;
const GIGABYTE = 1_000_000_000;
const DAY_MS = 24 * 3_600_000;
const CERTIFICATE_DAYS = 14;

export function checkDataFolder({ dataDir }: Config): DoctorFinding {
  const check = "data folder";
  if (!existsSync(dataDir)) return warn(check, `${dataDir} does not exist yet; the first start creates it`);
  const { mode, uid } = statSync(dataDir);
  if (uid !== process.getuid?.()) {
    return fail(
      check,
      `${dataDir} belongs to user ${uid}; run this command as that user: sudo -u '#${uid}' fairlead doctor`,
    );
  }
  if ((mode & OTHERS_MAY) !== 0)
    return fail(check, `${dataDir} is accessible to other users; run: chmod 700 ${dataDir}`);
  return ok(check, `${dataDir} is accessible only to its owner`);
}

/** A backup or an upgrade needs as much space as the store. */
export async function checkDisk({ dataDir }: Config): Promise<DoctorFinding> {
  const check = "disk";
  if (!existsSync(dataDir)) return skipped(check, "there is no data folder yet");
  const { bavail, bsize } = await statfs(dataDir);
  const free = bavail * bsize;
  const file = join(dataDir, "fairlead.db");
  const store = existsSync(file) ? statSync(file).size : 0;
  const words = `${(free / GIGABYTE).toFixed(1)} GB free, the store uses ${(store / GIGABYTE).toFixed(1)} GB`;
  if (free < GIGABYTE / 5) return fail(check, `${words}; free up space, or nothing can be written`);
  if (free < GIGABYTE || free < 1.5 * store) return warn(check, `${words}; a backup needs as much space as the store`);
  return ok(check, words);
}

export function checkCertificate({ server: { tls, publicUrl, trustedProxies } }: Config, clock: Clock): DoctorFinding {
  const check = "certificate";
  if (tls === undefined) return checkProxy(publicUrl, trustedProxies);
  const { expiresAt, names } = readCertificate(tls);
  const days = Math.floor((expiresAt - clock.now()) / DAY_MS);
  const words = `${tls.certFile} is valid for ${names}, until ${rfc3339(expiresAt)}`;
  if (days < 0) return fail(check, `${words}: it has expired; renew it`);
  return days < CERTIFICATE_DAYS ? warn(check, `${words}: ${days} days left; renew it`) : ok(check, words);
}

function checkProxy(publicUrl: string | null, trustedProxies: readonly string[]): DoctorFinding {
  const check = "reverse proxy";
  if (publicUrl === null)
    return warn(check, "server.publicUrl is not set: the URLs that the server returns work only on this machine");
  if (!publicUrl.startsWith("https:"))
    return warn(check, `${publicUrl} is plain http: traffic can be read on the network path`);
  if (trustedProxies.length > 0) return ok(check, `client addresses are read from ${trustedProxies.join(", ")}`);
  return warn(check, "server.trustedProxies is empty: all clients appear to have the proxy's address; add it there");
}
