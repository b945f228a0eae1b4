import { existsSync } from "node:fs";
import { openLocalAdmin } from "../admin/local-admin.ts";
import { readMasterKey } from "../auth/master-key.ts";
import { readStoreFacts } from "../backup/snapshot.ts";
import type { Config } from "../config.ts";
import { checkSqlite } from "../db/copy-sqlite.ts";
import { migrationState } from "../db/migrate.ts";
import { type OpenedDatabase, openDatabase } from "../db/open.ts";
import { storeLocation } from "../db/store-location.ts";
import { type Finding, fail, found, ok, skipped, warn } from "./finding.ts";

/** What the doctor sees of the store and the key to it. */

export async function checkStore(config: Config): Promise<readonly Finding[]> {
  const location = storeLocation(config);
  if ("file" in location && !existsSync(location.file)) {
    return [warn("store", "there is none yet; the first start makes it")];
  }
  const integrity = await found("store integrity", () => checkIntegrity(location));
  if (integrity.status === "fail") return [integrity];
  const opened = openDatabase(location);
  try {
    const version = await found("store version", () => checkVersion(opened));
    const key = await found("master key", () => checkMasterKey(config, opened));
    const ledger = version.status === "ok" ? await found("ledger", () => checkLedger(config)) : notChecked;
    return [integrity, version, key, ledger];
  } finally {
    await opened.close();
  }
}

const notChecked = skipped("ledger", "looked at once the store is of this version");

async function checkIntegrity(location: ReturnType<typeof storeLocation>): Promise<Finding> {
  const check = "store integrity";
  if ("url" in location) return ok(check, "is PostgreSQL's own matter");
  const faults = await checkSqlite(location.file);
  if (faults.length === 0) return ok(check, `${location.file} is whole`);
  return fail(check, `${location.file} is broken: ${faults.join("; ")}; restore a backup (docs/disaster.md)`);
}

async function checkVersion(opened: OpenedDatabase): Promise<Finding> {
  const check = "store version";
  await opened.ping();
  const { missing } = await migrationState(opened.db);
  if (missing.length === 0) return ok(check, "is this program's");
  return warn(check, `the next start brings it to this version: ${missing.join(", ")}`);
}

async function checkMasterKey({ masterKeyFile }: Config, { db }: OpenedDatabase): Promise<Finding> {
  const check = "master key";
  const { id } = readMasterKey(masterKeyFile);
  const { masterKeyId } = await readStoreFacts(db);
  if (id === masterKeyId) return ok(check, `${masterKeyFile} (${id}) is the store's`);
  return fail(check, `${masterKeyFile} holds ${id}, and the store is sealed by ${masterKeyId}; put that one back`);
}

async function checkLedger(config: Config): Promise<Finding> {
  const check = "ledger";
  const admin = await openLocalAdmin(config);
  try {
    const { projects, entries, wrong } = await admin.checkLedger();
    if (wrong.length === 0) return ok(check, `${entries} entries of ${projects} projects add up`);
    return fail(check, `${wrong.length} projects are wrong; see fairlead admin check-ledger`);
  } finally {
    await admin.close();
  }
}
