import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { stat } from "node:fs/promises";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { pipeline } from "node:stream/promises";
import { NO_PROXIES, type ProxyRules } from "@fairlead/wire/proxy/proxy-rules";
import { connectionOf } from "../link/http-client.ts";

export interface DownloadOptions {
  readonly url: string;
  /** Destination. A partial download is resumed. */
  readonly file: string;
  readonly bytes: number;
  readonly signal: AbortSignal;
  /** Called before the first byte and periodically. @throws Error to abort */
  readonly onBytes: (received: number) => Promise<void>;
  readonly proxies?: Pick<ProxyRules, "find">;
  readonly inactivityMs?: number;
  /** Limit for the whole download. */
  readonly maxMs?: number;
}

const INACTIVITY_MS = 60_000;
const MAX_MS = 3_600_000;

/** Downloads a file of known length, without credentials: builds are not secret. @throws Error if it is incomplete */
export async function download(options: DownloadOptions): Promise<void> {
  const { file, bytes, onBytes } = options;
  let received = Math.min(await sizeOf(file), bytes);
  await onBytes(received);
  if (received === bytes) return;
  const late = AbortSignal.timeout(options.maxMs ?? MAX_MS);
  const signal = AbortSignal.any([options.signal, late]);
  const response = await open({ ...options, signal }, received);
  const isPart = response.statusCode === 206;
  if (!isPart) received = 0;
  const counted = async function* (source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of source) {
      received += chunk.length;
      if (received > bytes) throw new Error(`the file exceeds the expected ${bytes} bytes`);
      await onBytes(received);
      yield chunk;
    }
  };
  const target = createWriteStream(file, { flags: isPart ? "a" : "w", mode: 0o600 });
  await pipeline(response, counted, target, { signal });
  if (received < bytes) throw new Error(`the download was cut off after ${received} of ${bytes} bytes`);
}

export async function fileSha256(file: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file), hash);
  return hash.digest("hex");
}

function open(options: DownloadOptions, from: number): Promise<IncomingMessage> {
  const { signal, proxies = NO_PROXIES, inactivityMs = INACTIVITY_MS } = options;
  const url = new URL(options.url);
  return new Promise((resolve, reject) => {
    const send = url.protocol === "https:" ? httpsRequest : httpRequest;
    const headers = { connection: "close", ...(from > 0 ? { range: `bytes=${from}-` } : {}) };
    const call = send(url, { ...connectionOf(url, proxies), signal, headers, timeout: inactivityMs });
    let silent: { destroy(error: Error): void } = call;
    call.once("timeout", () => silent.destroy(new Error(`no data for ${inactivityMs / 1000} s`)));
    call.on("error", reject);
    call.once("response", (response) => {
      silent = response;
      const { statusCode } = response;
      if (statusCode === 200 || (statusCode === 206 && startsAt(response) === from)) {
        resolve(response);
        return;
      }
      call.destroy();
      reject(new Error(`the platform host returned ${statusCode}`));
    });
    call.end();
  });
}

function startsAt({ headers }: IncomingMessage): number {
  return Number(/^bytes (\d+)-/.exec(headers["content-range"] ?? "")?.[1]);
}

async function sizeOf(file: string): Promise<number> {
  try {
    return (await stat(file)).size;
  } catch {
    return 0;
  }
}
