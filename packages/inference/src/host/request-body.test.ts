import { once } from "node:events";
import { createServer, request as httpRequest, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { Admission, type Ticket } from "@fairlead/hosting/requests/admission";
import { UploadPace } from "@fairlead/hosting/requests/upload-pace";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { checkBodyHeaders, readBody } from "./request-body.ts";

const MAX_BYTES = 1_000_000;
const UNCOUNTED = { reached: () => undefined };

let server: Server;
let admission: Admission;
let ticket: Ticket;
let pace: UploadPace;

beforeEach(async () => {
  admission = new Admission({ maxCallsInFlight: 10, maxBufferedBytes: 3_000_000, ownerShare: 1 }, UNCOUNTED);
  ticket = admission.enter();
  pace = new UploadPace({ bytesPerSecond: 16_384, onSlow: () => undefined });
  server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

interface Upload {
  readonly encoding?: string;
  readonly body: Buffer;
  /** Sends this many bytes and then breaks off. */
  readonly breakAt?: number;
}

/** Begins an upload. @returns the request as the server sees it. */
async function upload({ encoding, body, breakAt }: Upload): Promise<IncomingMessage> {
  const headers = encoding === undefined ? {} : { "content-encoding": encoding };
  const { port } = server.address() as AddressInfo;
  const client = httpRequest({ port, host: "127.0.0.1", method: "POST", headers, agent: false });
  client.on("error", () => undefined);
  const arrived = once(server, "request");
  if (breakAt === undefined) client.end(body);
  else client.write(body.subarray(0, breakAt), () => setImmediate(() => client.destroy()));
  const [request] = (await arrived) as [IncomingMessage];
  return request;
}

const read = async (sent: Upload): Promise<Buffer[] | null> =>
  readBody(await upload(sent), { ticket, pace, maxBytes: MAX_BYTES });

const TEXT = Buffer.from(
  JSON.stringify({ model: "n/m", messages: [{ role: "user", content: "héllo ".repeat(30_000) }] }),
);
const COMPRESSED: readonly (readonly [string, (bytes: Buffer) => Buffer])[] = [
  ["gzip", (bytes) => gzipSync(bytes)],
  ["x-gzip", (bytes) => gzipSync(bytes)],
  ["GZIP", (bytes) => gzipSync(bytes)],
  ["deflate", (bytes) => deflateSync(bytes)],
  ["br", (bytes) => brotliCompressSync(bytes)],
  ["zstd", (bytes) => zstdCompressSync(bytes)],
];

describe("a compressed body", () => {
  test.each(COMPRESSED)("(%s) is decompressed, and counts with its decompressed size", async (encoding, compress) => {
    const pieces = await read({ encoding, body: compress(TEXT) });
    expect(Buffer.concat(pieces ?? []).equals(TEXT)).toBe(true);
    expect(admission.load.bufferedBytes).toBeGreaterThanOrEqual(TEXT.length);
  });

  test.each(COMPRESSED)("(%s) that would become too large is rejected early", async (encoding, compress) => {
    const bomb = compress(Buffer.alloc(200 * MAX_BYTES));
    expect(bomb.length).toBeLessThan(MAX_BYTES);
    await expect(read({ encoding, body: bomb })).rejects.toMatchObject({ code: "request_too_large" });
    expect(admission.load.bufferedBytes).toBeLessThanOrEqual(2 * MAX_BYTES);
  });

  test.each(COMPRESSED)("(%s) that is truncated is rejected", async (encoding, compress) => {
    const body = compress(TEXT);
    await expect(read({ encoding, body: body.subarray(0, body.length - 6) })).rejects.toMatchObject({
      code: "invalid_request",
      param: "content-encoding",
    });
  });

  test.each(COMPRESSED)("(%s) that is not compressed is rejected", async (encoding) => {
    await expect(read({ encoding, body: TEXT })).rejects.toMatchObject({
      code: "invalid_request",
      param: "content-encoding",
    });
  });

  test("with a window that would need much memory is rejected", async () => {
    const params = { [constants.ZSTD_c_windowLog]: 27, [constants.ZSTD_c_contentSizeFlag]: 0 };
    const body = zstdCompressSync(Buffer.alloc(100), { params });
    const wide = Buffer.from(body);
    // The frame's window descriptor: an exponent of 17 is 2^27 bytes.
    wide[5] = 17 << 3;
    await expect(read({ encoding: "zstd", body: wide })).rejects.toMatchObject({ code: "invalid_request" });
  });

  test("beyond the host's memory budget is rejected as overload", async () => {
    const other = admission.enter();
    other.holdBytes(2_900_000);
    await expect(read({ encoding: "gzip", body: gzipSync(TEXT) })).rejects.toMatchObject({ code: "overloaded" });
  });

  test.each(["gzip, br", "compress", "gzip;q=1", "aws-chunked"])(
    "with the encoding %s is not supported",
    async (encoding) => {
      const request = await upload({ encoding, body: TEXT });
      expect(() => checkBodyHeaders(request, MAX_BYTES)).toThrow(
        expect.objectContaining({ code: "unsupported_media_type", param: "content-encoding" }),
      );
    },
  );

  test.each([undefined, "identity", ""])("is not expected with the encoding %s", async (encoding) => {
    const pieces = await read({ ...(encoding === undefined ? {} : { encoding }), body: TEXT });
    expect(Buffer.concat(pieces ?? []).equals(TEXT)).toBe(true);
  });

  test.each([undefined, "gzip"])("is discarded if its caller disconnects (%s)", async (encoding) => {
    const body = encoding === undefined ? TEXT : gzipSync(TEXT);
    expect(await read({ ...(encoding === undefined ? {} : { encoding }), body, breakAt: body.length - 4 })).toBeNull();
    ticket.leave();
    expect(admission.load).toEqual({ callsInFlight: 0, bufferedBytes: 0 });
  });
});
