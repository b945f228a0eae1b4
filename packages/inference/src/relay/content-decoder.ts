import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Transform } from "node:stream";
import { constants, createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from "node:zlib";
import { DomainError } from "@fairlead/protocol/errors";

/** Larger chunks than the default, because each has a cost. */
const CHUNK_BYTES = 64 * 1024;
/** The window that RFC 8878 (§3.1.1.1.2) recommends; the format allows gigabytes. */
const ZSTD_WINDOW_LOG = 23;

const DECODERS: ReadonlyMap<string, () => Transform> = new Map([
  ["gzip", () => createGunzip({ chunkSize: CHUNK_BYTES })],
  ["x-gzip", () => createGunzip({ chunkSize: CHUNK_BYTES })],
  ["deflate", () => createInflate({ chunkSize: CHUNK_BYTES })],
  ["br", () => createBrotliDecompress({ chunkSize: CHUNK_BYTES })],
  [
    "zstd",
    () =>
      createZstdDecompress({ chunkSize: CHUNK_BYTES, params: { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG } }),
  ],
]);

/** The content coding of a body; null for none. */
export function codingOf(headers: IncomingHttpHeaders): string | null {
  const coding = headers["content-encoding"];
  if (coding === undefined) return null;
  const name = coding.trim().toLowerCase();
  return name === "" || name === "identity" ? null : name;
}

/** @param coding null for none. */
export function isDecodable(coding: string | null): boolean {
  return coding === null || DECODERS.has(coding);
}

/** @returns null for an unsupported coding, including several layers. */
export function makeDecoder(coding: string): Transform | null {
  return DECODERS.get(coding)?.() ?? null;
}

/** @param coding null for none. @throws if decoding fails or the result is too long. */
export async function decodeWhole(bytes: Buffer, coding: string | null, maxBytes: number): Promise<Buffer> {
  if (coding === null) return bytes;
  const decoder = makeDecoder(coding);
  if (decoder === null) throw new Error("the content-encoding is not supported");
  const pieces: Buffer[] = [];
  let length = 0;
  decoder.end(bytes);
  for await (const piece of decoder as AsyncIterable<Buffer>) {
    length += piece.length;
    if (length > maxBytes) throw new Error("the decompressed body is too long");
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

/**
 * The decoder of a request body; null if it is not compressed.
 * @throws DomainError `unsupported_media_type` for unknown codings and several layers of compression.
 */
export function decoderFor(request: IncomingMessage): (() => Transform) | null {
  const coding = codingOf(request.headers);
  if (coding === null) return null;
  const decoder = DECODERS.get(coding);
  if (decoder !== undefined) return decoder;
  throw new DomainError("unsupported_media_type", "A body can be compressed once, with gzip, deflate, br or zstd.", {
    param: "content-encoding",
  });
}

export function notDecodable(cause: Error): DomainError {
  const message = "The body does not match its content-encoding, or is truncated.";
  return new DomainError("invalid_request", message, { param: "content-encoding", cause });
}
