import { createHash, hkdfSync, randomBytes } from "node:crypto";
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { StartError } from "../../../installation/process/start-error.ts";

/** The key that seals all secrets in the store. Kept in a separate file, never in the store or backups. */
export interface MasterKey {
  /** Identifies the key without revealing it. */
  readonly id: string;
  /** 32 bytes. */
  readonly bytes: Uint8Array;
}

const KEY_BYTES = 32;
const OTHERS_MAY = 0o077;

/** @throws StartError if the file is missing, accessible to others, or contains no key. */
export function readMasterKey(file: string): MasterKey {
  const { mode } = stat(file);
  if ((mode & OTHERS_MAY) !== 0) {
    throw new StartError(`The master key ${file} is accessible to other users. Run: chmod 600 ${file}`);
  }
  const bytes = Buffer.from(readFileSync(file, "utf8").trim(), "base64");
  if (bytes.length !== KEY_BYTES) {
    throw new StartError(`The master key ${file} does not contain ${KEY_BYTES} bytes in base64.`);
  }
  return { id: keyId(bytes), bytes };
}

/** Creates the file atomically on the first start. Never replaces an existing one: everything it sealed would be lost. */
export function createMasterKey(file: string): void {
  const temporary = `${file}.${process.pid}.tmp`;
  const descriptor = openSync(temporary, "wx", 0o600);
  try {
    writeSync(descriptor, `${randomBytes(KEY_BYTES).toString("base64")}\n`);
    fsyncSync(descriptor);
    // Unlike a rename, a link fails if the target exists.
    linkSync(temporary, file);
  } finally {
    closeSync(descriptor);
    unlinkSync(temporary);
  }
}

/** The key of an unfinished rotation. */
export function nextMasterKeyFile(file: string): string {
  return `${file}.next`;
}

/**
 * The key that the store is sealed with. Finishes an interrupted rotation, or undoes it if the store's transaction was not committed. The caller
 * holds the server lock.
 * @param sealedBy the key id in the store. @throws StartError
 */
export function settleMasterKey(file: string, sealedBy: string): MasterKey {
  const next = nextMasterKeyFile(file);
  if (!existsSync(next)) return readMasterKey(file);
  if (readMasterKey(next).id === sealedBy) switchMasterKey(file);
  else unlinkSync(next);
  return readMasterKey(file);
}

/** Installs the next key. The previous one is kept as `<file>.<its id>`, because older backups need it. */
export function switchMasterKey(file: string): void {
  if (existsSync(file)) keepAs(file, `${file}.${readMasterKey(file).id}`);
  renameSync(nextMasterKeyFile(file), file);
  syncFolder(dirname(file));
}

function keepAs(file: string, name: string): void {
  if (!existsSync(name)) linkSync(file, name);
}

function syncFolder(folder: string): void {
  const descriptor = openSync(folder, "r");
  fsyncSync(descriptor);
  closeSync(descriptor);
}

/** Derives a secret for one purpose from the master key (RFC 5869). @returns 32 bytes in base64url */
export function deriveSecret(key: MasterKey, purpose: string): string {
  const bytes = hkdfSync("sha256", key.bytes, "", `fairlead ${purpose}`, KEY_BYTES);
  return Buffer.from(bytes).toString("base64url");
}

function stat(file: string): { readonly mode: number } {
  try {
    return statSync(file);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new StartError(
      `The master key cannot be read: ${why}. Without it, the secrets in the store cannot be decrypted. Restore a copy of it. If you have none, see docs/disaster.md.`,
    );
  }
}

function keyId(bytes: Uint8Array): string {
  return createHash("sha256").update("fairlead master key id\0").update(bytes).digest("hex").slice(0, 16);
}
