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
import { StartError } from "../start-error.ts";

/** The key that seals every secret at rest. It stands in a file of its own, never in the store or its backups (design §5). */
export interface MasterKey {
  /** Names the key without telling anything of it. */
  readonly id: string;
  /** 32 bytes. */
  readonly bytes: Uint8Array;
}

const KEY_BYTES = 32;
const OTHERS_MAY = 0o077;

/** @throws StartError when the file is missing, can be read by others, or holds no key. */
export function readMasterKey(file: string): MasterKey {
  const { mode } = stat(file);
  if ((mode & OTHERS_MAY) !== 0) {
    throw new StartError(`The master key ${file} can be used by others than its owner; run: chmod 600 ${file}`);
  }
  const bytes = Buffer.from(readFileSync(file, "utf8").trim(), "base64");
  if (bytes.length !== KEY_BYTES) {
    throw new StartError(`The master key ${file} does not hold ${KEY_BYTES} bytes in base64.`);
  }
  return { id: keyId(bytes), bytes };
}

/** Makes the file on the first start, whole or not at all. An existing one is never replaced: what it sealed would be lost. */
export function createMasterKey(file: string): void {
  const temporary = `${file}.${process.pid}.tmp`;
  const descriptor = openSync(temporary, "wx", 0o600);
  try {
    writeSync(descriptor, `${randomBytes(KEY_BYTES).toString("base64")}\n`);
    fsyncSync(descriptor);
    // Unlike a rename, a link refuses to replace.
    linkSync(temporary, file);
  } finally {
    closeSync(descriptor);
    unlinkSync(temporary);
  }
}

/** The key of a rotation that has not come to its end. */
export function nextMasterKeyFile(file: string): string {
  return `${file}.next`;
}

/**
 * The key that the store is sealed by. A rotation that was cut off is brought to its end, or taken back where the store has not
 * changed: the store's transaction decides which key counts. The caller holds the server lock.
 * @param sealedBy the id that stands in the store. @throws StartError
 */
export function settleMasterKey(file: string, sealedBy: string): MasterKey {
  const next = nextMasterKeyFile(file);
  if (!existsSync(next)) return readMasterKey(file);
  if (readMasterKey(next).id === sealedBy) switchMasterKey(file);
  else unlinkSync(next);
  return readMasterKey(file);
}

/** Puts the next key in its place. The one before is kept as `<file>.<its id>`, since older backups are sealed by it. */
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

/** A secret for one purpose, the same as long as the master key is (RFC 5869). @returns 32 bytes in base64url */
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
      `The master key cannot be read: ${why}. Without it the store's secrets cannot be opened. Put a copy of it back; if there is none, docs/disaster.md says how to go on.`,
    );
  }
}

function keyId(bytes: Uint8Array): string {
  return createHash("sha256").update("fairlead master key id\0").update(bytes).digest("hex").slice(0, 16);
}
