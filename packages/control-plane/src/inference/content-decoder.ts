import type { IncomingMessage } from "node:http";
import type { Transform } from "node:stream";
import { constants, createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from "node:zlib";
import { DomainError } from "@fairlead/protocol/errors";

/** Fewer pieces than by default: each one costs. */
const CHUNK_BYTES = 64 * 1024;
/** What RFC 8878 (§3.1.1.1.2) wants decoders to support: the format alone would allow a window of gigabytes. */
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

/**
 * How a request's body has to be decompressed; null where it is plain.
 * @throws DomainError `unsupported_media_type` for what we do not know, and for several layers of compression.
 */
export function decoderFor(request: IncomingMessage): (() => Transform) | null {
  const encoding = (request.headers["content-encoding"] ?? "identity").trim().toLowerCase();
  if (encoding === "identity" || encoding === "") return null;
  const decoder = DECODERS.get(encoding);
  if (decoder !== undefined) return decoder;
  throw new DomainError("unsupported_media_type", "A body may be compressed once, by gzip, deflate, br or zstd.", {
    param: "content-encoding",
  });
}

export function notDecodable(cause: Error): DomainError {
  const message = "The body is not what its content-encoding says, or it is cut off.";
  return new DomainError("invalid_request", message, { param: "content-encoding", cause });
}
