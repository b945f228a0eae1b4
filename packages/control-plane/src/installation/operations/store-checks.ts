import { existsSync } from "node:fs";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { Kysely } from "kysely";
import { readMasterKey } from "../../access/auth/sealing/master-key.ts";
import { aesSealer } from "../../access/auth/sealing/sealer.ts";
import { openProviderCheck } from "../../models/providers/check/offline-check-service.ts";
import { openLocalAdmin } from "../admin/local-admin.ts";
import { readStoreFacts } from "../backup/snapshot.ts";
import type { Config } from "../config/config.ts";
import { migrationState } from "../db/migrations/migrate.ts";
import { type OpenedDatabase, openDatabase } from "../db/open.ts";
import { checkSqlite } from "../db/sqlite/copy-sqlite.ts";
import { storeLocation } from "../db/store-location.ts";
import type { Database } from "../db/tables/schema.ts";
import { createLog } from "../process/log.ts";
import { type DoctorFinding, fail, found, ok, skipped, warn } from "./finding.ts";
import { checkNodes, checkSecrets, listed } from "./fleet-checks.ts";

/** Checks providers like calls do. Concurrent and limited in number, because each can take several seconds. */
const AT_ONCE = 10;
const MAX_ASKED = 100;

async function checkProviders(config: Config, db: Kysely<Database>, clock: Clock): Promise<DoctorFinding> {
  const check = "providers";
  const sealer = aesSealer(readMasterKey(config.masterKeyFile));
  const log = createLog({ level: "silent" });
  const { names, ask } = await openProviderCheck({ db, settings: config.providers, sealer, clock, log });
  const asked = names.slice(0, MAX_ASKED);
  const wrong: string[] = [];
  for (let start = 0; start < asked.length; start += AT_ONCE) {
    const group = asked.slice(start, start + AT_ONCE);
    const answers = await Promise.all(group.map(async (name) => ({ name, ...(await ask(name)) })));
    for (const { name, result, message } of answers) {
      const owner = name.projectId === null ? "" : ` of ${name.projectId}`;
      if (result !== "ok") wrong.push(`${name.name}${owner}: ${message}`);
    }
  }
  if (wrong.length > 0) return warn(check, `${wrong.length} of ${asked.length} cannot be used: ${listed(wrong)}`);
  if (names.length === 0) return ok(check, "none");
  return ok(
    check,
    names.length > MAX_ASKED ? `the first ${MAX_ASKED} of ${names.length} respond` : `all ${names.length} respond`,
  );
}

/** Doctor checks of the store and the master key. */

export async function checkStore(config: Config, clock: Clock, runs: boolean): Promise<readonly DoctorFinding[]> {
  const location = storeLocation(config);
  if ("file" in location && !existsSync(location.file)) {
    return [warn("store", "does not exist yet; the first start creates it")];
  }
  const integrity = await found("store integrity", () => checkIntegrity(location));
  if (integrity.status === "fail") return [integrity];
  const opened = openDatabase(location);
  try {
    const version = await found("store version", () => checkVersion(opened));
    const key = await found("master key", () => checkMasterKey(config, opened));
    const ledger = version.status === "ok" ? await found("ledger", () => checkLedger(config)) : notChecked;
    // Contents are read only if the schema and the master key match.
    const readable = version.status === "ok" && key.status === "ok";
    return [
      integrity,
      version,
      key,
      ledger,
      ...(readable ? await checkContents(config, opened.db, { clock, runs }) : []),
    ];
  } finally {
    await opened.close();
  }
}

async function checkContents(
  config: Config,
  db: OpenedDatabase["db"],
  { clock, runs }: { readonly clock: Clock; readonly runs: boolean },
): Promise<readonly DoctorFinding[]> {
  const nodes = checkNodes(db, runs).catch(async (error: unknown) => [
    await found("nodes", () => Promise.reject(error)),
  ]);
  return [
    await found("secrets", () => checkSecrets(config, db)),
    ...(await nodes),
    await found("providers", () => checkProviders(config, db, clock)),
  ];
}

const notChecked = skipped("ledger", "checked once the store has this version");

async function checkIntegrity(location: ReturnType<typeof storeLocation>): Promise<DoctorFinding> {
  const check = "store integrity";
  if ("url" in location) return ok(check, "checked by PostgreSQL itself");
  const faults = await checkSqlite(location.file);
  if (faults.length === 0) return ok(check, `${location.file} is intact`);
  return fail(check, `${location.file} is damaged: ${faults.join("; ")}; restore a backup (docs/disaster.md)`);
}

async function checkVersion(opened: OpenedDatabase): Promise<DoctorFinding> {
  const check = "store version";
  await opened.ping();
  const { missing } = await migrationState(opened.db);
  if (missing.length === 0) return ok(check, "matches this program");
  return warn(check, `the next start migrates it to this version: ${missing.join(", ")}`);
}

async function checkMasterKey({ masterKeyFile }: Config, { db }: OpenedDatabase): Promise<DoctorFinding> {
  const check = "master key";
  const { id } = readMasterKey(masterKeyFile);
  const { masterKeyId } = await readStoreFacts(db);
  if (id === masterKeyId) return ok(check, `${masterKeyFile} (${id}) matches the store`);
  return fail(check, `${masterKeyFile} contains ${id}, but the store is sealed with ${masterKeyId}; restore that key`);
}

async function checkLedger(config: Config): Promise<DoctorFinding> {
  const check = "ledger";
  const admin = await openLocalAdmin(config);
  try {
    const { projects, entries, wrong } = await admin.checkLedger();
    if (wrong.length === 0) return ok(check, `${entries} entries of ${projects} projects are consistent`);
    return fail(check, `${wrong.length} projects are inconsistent; see fairlead admin check-ledger`);
  } finally {
    await admin.close();
  }
}
