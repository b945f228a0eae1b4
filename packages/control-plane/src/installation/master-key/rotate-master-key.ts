import { basename } from "node:path";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { IdSource } from "@fairlead/protocol/values/ids";
import type { Kysely } from "kysely";
import { OPERATOR } from "../../access/audit/audit.ts";
import { AuditService } from "../../access/audit/audit-service.ts";
import { insertSigningKey } from "../../access/auth/sealing/key-ring.ts";
import {
  createMasterKey,
  type MasterKey,
  nextMasterKeyFile,
  readMasterKey,
  settleMasterKey,
  switchMasterKey,
} from "../../access/auth/sealing/master-key.ts";
import { aesSealer } from "../../access/auth/sealing/sealer.ts";
import type { Database } from "../db/tables/schema.ts";
import { StartError } from "../process/start-error.ts";
import { SEALED_COLUMNS } from "./sealed-columns.ts";
import { type ForgottenSecrets, SealedStore } from "./sealed-store.ts";

/**
 * Replaces the master key: writes the new key next to the old one, seals everything again in one transaction, then swaps the files. After an
 * interruption, `settleMasterKey` determines the valid key. The caller holds the server lock, and the store is not open elsewhere.
 */
export interface MasterKeyChange {
  readonly db: Kysely<Database>;
  readonly masterKeyFile: string;
  readonly clock: Clock;
  readonly ids: IdSource;
  /** Called before each step, for crash tests. */
  readonly onStep?: (step: RotationStep) => void;
}

export type RotationStep = "made" | "sealed" | "committed" | "switched";

export interface RotationReport {
  readonly keyId: string;
  /** The previous key, needed for older backups. */
  readonly formerKeyId: string;
  /** Number of values sealed again, by kind. */
  readonly resealed: Readonly<Record<string, number>>;
}

export interface ForgetReport extends ForgottenSecrets {
  /** The new key. */
  readonly keyId: string;
}

const PAGE = 500;

/** @throws StartError if the master key does not match the store, or the new one cannot be written */
export async function rotateMasterKey(change: MasterKeyChange): Promise<RotationReport> {
  const { db, masterKeyFile, onStep = () => undefined } = change;
  const sealedBy = await storeMasterKeyId(db);
  const former = settleMasterKey(masterKeyFile, sealedBy);
  if (former.id !== sealedBy) {
    throw new StartError(
      `The store is sealed with the master key ${sealedBy}, but ${masterKeyFile} contains ${former.id}. Restore the correct key first.`,
    );
  }
  const next = makeNextKey(masterKeyFile);
  onStep("made");
  const resealed = await db.transaction().execute(async (transaction) => {
    const counts = await resealAll(transaction, { former, next });
    await new SealedStore(transaction).setMasterKey(next.id);
    await record(change, transaction, { action: "admin.rotate_master_key", keyId: next.id });
    onStep("sealed");
    return counts;
  });
  onStep("committed");
  switchMasterKey(masterKeyFile);
  onStep("switched");
  return { keyId: next.id, formerKeyId: former.id, resealed };
}

async function resealAll(
  transaction: Kysely<Database>,
  keys: { readonly former: MasterKey; readonly next: MasterKey },
): Promise<Readonly<Record<string, number>>> {
  const [from, to] = [aesSealer(keys.former), aesSealer(keys.next)];
  const store = new SealedStore(transaction);
  const counts: Record<string, number> = {};
  for (const place of SEALED_COLUMNS) {
    let [count, after]: [number, readonly string[] | null] = [0, null];
    for (;;) {
      const rows = await store.page(place, after, PAGE);
      for (const { key, context, sealed } of rows) {
        await store.replace(place, { key, sealed: await to.seal(await from.open(sealed, context), context) });
      }
      count += rows.length;
      after = rows.at(-1)?.key ?? null;
      if (after === null) break;
    }
    counts[`${place.table}.${place.column}`] = count;
  }
  return counts;
}

/** For a permanently lost master key: discards everything it sealed and keeps the rest. */
export async function forgetSealed(change: MasterKeyChange): Promise<ForgetReport> {
  const { db, masterKeyFile, clock } = change;
  if (isThere(masterKeyFile, await storeMasterKeyId(db))) {
    throw new StartError(
      `${masterKeyFile} contains the key that the store is sealed with, so nothing is lost. Start the server.`,
    );
  }
  const next = makeNextKey(masterKeyFile);
  const forgotten = await db.transaction().execute(async (transaction) => {
    const gone = await new SealedStore(transaction).forget(clock.now());
    await insertSigningKey(transaction, { ...change, sealer: aesSealer(next) });
    await record(change, transaction, { action: "admin.forget_sealed", keyId: next.id });
    return gone;
  });
  switchMasterKey(masterKeyFile);
  return { keyId: next.id, ...forgotten };
}

function isThere(masterKeyFile: string, id: string): boolean {
  try {
    return settleMasterKey(masterKeyFile, id).id === id;
  } catch (error) {
    if (error instanceof StartError) return false;
    throw error;
  }
}

async function storeMasterKeyId(db: Kysely<Database>): Promise<string> {
  const { masterKeyId } = await new SealedStore(db).identity();
  if (masterKeyId === null) {
    throw new StartError("The store has no signing key, so it has not been sealed with a master key yet.");
  }
  return masterKeyId;
}

function makeNextKey(masterKeyFile: string): MasterKey {
  const file = nextMasterKeyFile(masterKeyFile);
  try {
    createMasterKey(file);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new StartError(
      `The new key cannot be written to ${file}: ${why}. ${basename(masterKeyFile)} must be in a folder where this user may write. ` +
        "A systemd credential is copied from there.",
    );
  }
  return readMasterKey(file);
}

async function record(
  { clock, ids }: MasterKeyChange,
  transaction: Kysely<Database>,
  done: { readonly action: "admin.rotate_master_key" | "admin.forget_sealed"; readonly keyId: string },
): Promise<void> {
  const { installationId: id } = await new SealedStore(transaction).identity();
  const resource = { type: "installation", id } as const;
  const { action, keyId } = done;
  const audit = new AuditService({ clock, ids });
  await audit.record(transaction, { actor: OPERATOR, action, projectId: null, resource, detail: { keyId } });
}

export { countSealed } from "./sealed-store.ts";
