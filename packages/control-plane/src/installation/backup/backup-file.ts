import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { constants, createGunzip, createGzip } from "node:zlib";
import { parseJson } from "@fairlead/protocol/values/parse-json";
import { StartError } from "../process/start-error.ts";
import { MANIFEST_FILE, type Manifest, manifestSchema } from "./manifest.ts";
import { parseTarHeader, TAR_BLOCK, TAR_END, tarHeader, tarPadding } from "./tar.ts";

/** Reads exact numbers of bytes from a stream. */
class ByteSource {
  readonly #pieces: AsyncIterator<Buffer>;
  #rest = Buffer.alloc(0);

  constructor(stream: Readable) {
    this.#pieces = (stream as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
  }

  /** For small parts, which are buffered. @throws Error if the stream ends first. */
  async read(bytes: number): Promise<Buffer> {
    const read: Buffer[] = [];
    for await (const piece of this.pieces(bytes)) read.push(piece);
    return Buffer.concat(read);
  }

  /** @throws Error if the stream ends first. */
  async *pieces(bytes: number): AsyncGenerator<Buffer> {
    let left = bytes;
    while (left > 0) {
      const piece = this.#rest.length > 0 ? this.#rest : await this.#next();
      if (piece === null) throw new Error("it is truncated");
      const taken = piece.subarray(0, left);
      this.#rest = piece.subarray(taken.length);
      left -= taken.length;
      yield taken;
    }
  }

  /** Reads to the end, so that checks at the end of the stream run. */
  async drain(): Promise<void> {
    while ((await this.#next()) !== null);
  }

  async #next(): Promise<Buffer<ArrayBuffer> | null> {
    const { value, done } = await this.#pieces.next();
    return done === true ? null : (value as Buffer<ArrayBuffer>);
  }
}

/** A backup is a gzipped tar of its manifest and the store's file. */

/** Bytes of the store processed so far, and in total. */
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
  /** Replaced only when the new one is complete and on disk. */
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
  if (done !== bytes) throw new Error("the copy of the store changed while it was being packed");
  yield Buffer.alloc(tarPadding(bytes));
  yield TAR_END;
}

export interface UnpackedBackup {
  readonly manifest: Manifest;
  readonly storeFile: string;
}

export interface UnpackBackup {
  readonly file: string;
  /** Must exist. */
  readonly folder: string;
  readonly onProgress: OnProgress;
}

/** Extracts and verifies the store's file. @throws StartError if the backup is incomplete */
export async function unpackBackup(options: UnpackBackup): Promise<UnpackedBackup> {
  const gunzip = createGunzip();
  try {
    // `pipeline` reports a failure on either side to the reader.
    const packed = pipeline(createReadStream(options.file), gunzip);
    const [unpacked] = await Promise.all([readContent(new ByteSource(gunzip), options), packed]);
    return unpacked;
  } catch (error) {
    gunzip.destroy();
    throw new StartError(`${options.file} is not a complete backup: ${wordsOf(error)}. Nothing was changed.`);
  }
}

async function readContent(source: ByteSource, { folder, onProgress }: UnpackBackup): Promise<UnpackedBackup> {
  const first = await entryOf(source);
  if (first.name !== MANIFEST_FILE || first.bytes > MAX_MANIFEST_BYTES)
    throw new Error("it does not start with a manifest");
  const text = await source.read(first.bytes);
  await source.read(tarPadding(first.bytes));
  const manifest = manifestSchema.parse(parseJson(text));
  const { name, bytes, sha256 } = manifest.file;
  const second = await entryOf(source);
  if (second.name !== name || second.bytes !== bytes) throw new Error("its content does not match its manifest");
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
  if (hash.digest("hex") !== sha256) throw new Error("the SHA-256 checksum of the store does not match");
  await source.drain();
  return { manifest, storeFile };
}

async function entryOf(source: ByteSource): Promise<{ readonly name: string; readonly bytes: number }> {
  const entry = parseTarHeader(await source.read(TAR_BLOCK));
  if (entry === null) throw new Error("it is truncated");
  return entry;
}

/** Makes renames durable. */
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
