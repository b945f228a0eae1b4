import { basename } from "node:path";
import type { Clock } from "@fairlead/protocol/clock";
import type { IdSource } from "@fairlead/protocol/ids";
import type { Kysely } from "kysely";
import { OPERATOR } from "../audit/audit.ts";
import { AuditService } from "../audit/audit-service.ts";
import { insertSigningKey } from "../auth/key-ring.ts";
import {
  createMasterKey,
  type MasterKey,
  nextMasterKeyFile,
  readMasterKey,
  settleMasterKey,
  switchMasterKey,
} from "../auth/master-key.ts";
import { aesSealer } from "../auth/sealer.ts";
import type { Database } from "../db/schema.ts";
import { StartError } from "../start-error.ts";
import { type ForgottenSecrets, SEALED_COLUMNS, SealedStore } from "./sealed-store.ts";

/**
 * Another master key in the place of the one before. First the new key is on disk beside it, then one transaction seals
 * everything anew, then the files change places; whatever cuts that off, `settleMasterKey` finds the key that counts.
 * The caller holds the server lock, and nobody else has the store open.
 */
export interface MasterKeyChange {
  readonly db: Kysely<Database>;
  readonly masterKeyFile: string;
  readonly clock: Clock;
  readonly ids: IdSource;
  /** Told before each step that a crash may come between. */
  readonly onStep?: (step: RotationStep) => void;
}

export type RotationStep = "made" | "sealed" | "committed" | "switched";

export interface RotationReport {
  readonly keyId: string;
  /** The key before, which backups of before need. */
  readonly formerKeyId: string;
  /** How many secrets were sealed anew, of every kind. */
  readonly resealed: Readonly<Record<string, number>>;
}

export interface ForgetReport extends ForgottenSecrets {
  /** The new key. */
  readonly keyId: string;
}

const PAGE = 500;

/** @throws StartError where the master key is not the store's, or the new one cannot be written */
export async function rotateMasterKey(change: MasterKeyChange): Promise<RotationReport> {
  const { db, masterKeyFile, onStep = () => undefined } = change;
  const sealedBy = await storeMasterKeyId(db);
  const former = settleMasterKey(masterKeyFile, sealedBy);
  if (former.id !== sealedBy) {
    throw new StartError(
      `The store is sealed by the master key ${sealedBy}, and ${masterKeyFile} holds ${former.id}. Put the right one back first.`,
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

/** What to do when the master key is lost for good: everything that it sealed is given up, and the rest goes on. */
export async function forgetSealed(change: MasterKeyChange): Promise<ForgetReport> {
  const { db, masterKeyFile, clock } = change;
  if (isThere(masterKeyFile, await storeMasterKeyId(db))) {
    throw new StartError(`${masterKeyFile} is the key that the store is sealed by: nothing is lost. Start the server.`);
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
    throw new StartError("The store holds no key that signs, so no master key has sealed it yet.");
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
      `The new key cannot be written to ${file}: ${why}. ${basename(masterKeyFile)} must lie where this user may write; ` +
        "a systemd credential is copied from there.",
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
