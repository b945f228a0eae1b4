import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { constants, createGunzip, createGzip } from "node:zlib";
import { StartError } from "../start-error.ts";
import { ByteSource } from "./byte-source.ts";
import { MANIFEST_FILE, type Manifest, manifestSchema } from "./manifest.ts";
import { parseTarHeader, TAR_BLOCK, TAR_END, tarHeader, tarPadding } from "./tar.ts";

/** A backup is one file: a gzipped tar of its manifest and the store's file. */

/** Bytes of the store that are done, of all. */
export type OnProgress = (done: number, all: number) => void;

const MAX_MANIFEST_BYTES = 1_048_576;
const OWNER_ONLY = 0o600;

export async function sha256OfFile(file: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file), hash);
  return hash.digest("hex");
}

export interface PackBackup {
  readonly manifest: Manifest;
  readonly storeFile: string;
  /** Replaced only when the new one is whole and on disk. */
  readonly target: string;
  readonly onProgress: OnProgress;
}

export async function packBackup(backup: PackBackup): Promise<void> {
  const { target } = backup;
  const temporary = join(dirname(target), `.${basename(target)}.${process.pid}.tmp`);
  try {
    const file = createWriteStream(temporary, { flags: "wx", mode: OWNER_ONLY, flush: true });
    await pipeline(contentOf(backup), createGzip({ level: constants.Z_BEST_SPEED }), file);
    await rename(temporary, target);
    await syncFolder(dirname(target));
  } catch (error) {
    await rm(temporary, { force: true });
    throw new StartError(`The backup could not be written to ${target}: ${wordsOf(error)}`);
  }
}

async function* contentOf({ manifest, storeFile, onProgress }: PackBackup): AsyncGenerator<Buffer> {
  const seconds = Date.parse(manifest.createdAt) / 1000;
  const text = Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`);
  yield tarHeader({ name: MANIFEST_FILE, bytes: text.length }, seconds);
  yield text;
  yield Buffer.alloc(tarPadding(text.length));
  const { name, bytes } = manifest.file;
  yield tarHeader({ name, bytes }, seconds);
  let done = 0;
  for await (const piece of createReadStream(storeFile) as AsyncIterable<Buffer>) {
    done += piece.length;
    onProgress(done, bytes);
    yield piece;
  }
  if (done !== bytes) throw new Error("the copy of the store changed while it was packed");
  yield Buffer.alloc(tarPadding(bytes));
  yield TAR_END;
}

export interface UnpackedBackup {
  readonly manifest: Manifest;
  readonly storeFile: string;
}

export interface UnpackBackup {
  readonly file: string;
  /** Exists already. */
  readonly folder: string;
  readonly onProgress: OnProgress;
}

/** Lays the store's file into the folder, verified against its manifest. @throws StartError where the backup is not whole */
export async function unpackBackup(options: UnpackBackup): Promise<UnpackedBackup> {
  const gunzip = createGunzip();
  try {
    // `pipeline` hands a fault of either side to the reader.
    const packed = pipeline(createReadStream(options.file), gunzip);
    const [unpacked] = await Promise.all([readContent(new ByteSource(gunzip), options), packed]);
    return unpacked;
  } catch (error) {
    gunzip.destroy();
    throw new StartError(`${options.file} is no whole backup: ${wordsOf(error)}. Nothing was changed.`);
  }
}

async function readContent(source: ByteSource, { folder, onProgress }: UnpackBackup): Promise<UnpackedBackup> {
  const first = await entryOf(source);
  if (first.name !== MANIFEST_FILE || first.bytes > MAX_MANIFEST_BYTES) throw new Error("it does not begin with one");
  const text = await source.read(first.bytes);
  await source.read(tarPadding(first.bytes));
  const manifest = manifestSchema.parse(JSON.parse(text.toString()));
  const { name, bytes, sha256 } = manifest.file;
  const second = await entryOf(source);
  if (second.name !== name || second.bytes !== bytes) throw new Error("it does not hold what its manifest says");
  const storeFile = join(folder, name);
  const hash = createHash("sha256");
  const pieces = async function* (): AsyncGenerator<Buffer> {
    let done = 0;
    for await (const piece of source.pieces(bytes)) {
      hash.update(piece);
      done += piece.length;
      onProgress(done, bytes);
      yield piece;
    }
  };
  await pipeline(pieces(), createWriteStream(storeFile, { flags: "wx", mode: OWNER_ONLY, flush: true }));
  if (hash.digest("hex") !== sha256) throw new Error("the store in it is not the one that was packed (SHA-256)");
  await source.drain();
  return { manifest, storeFile };
}

async function entryOf(source: ByteSource): Promise<{ readonly name: string; readonly bytes: number }> {
  const entry = parseTarHeader(await source.read(TAR_BLOCK));
  if (entry === null) throw new Error("it ends too early");
  return entry;
}

/** So that a name that was given or taken outlives a power cut. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
