import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { stat } from "node:fs/promises";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { pipeline } from "node:stream/promises";

export interface DownloadOptions {
  readonly url: string;
  /** Where it goes. What an earlier try left there is gone on with. */
  readonly file: string;
  readonly bytes: number;
  readonly signal: AbortSignal;
  /** Called before the first byte and from time to time. @throws Error where it must not go on */
  readonly onBytes: (received: number) => Promise<void>;
  readonly inactivityMs?: number;
}

const INACTIVITY_MS = 60_000;

/** Fetches a file of a known length. No credential goes along: builds hold no secret. @throws Error where it did not come whole */
export async function download(options: DownloadOptions): Promise<void> {
  const { file, bytes, onBytes } = options;
  let received = Math.min(await sizeOf(file), bytes);
  await onBytes(received);
  if (received === bytes) return;
  const response = await open(options, received);
  const isPart = response.statusCode === 206;
  if (!isPart) received = 0;
  const counted = async function* (source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of source) {
      received += chunk.length;
      if (received > bytes) throw new Error(`more than the ${bytes} bytes that it should have came`);
      await onBytes(received);
      yield chunk;
    }
  };
  await pipeline(response, counted, createWriteStream(file, { flags: isPart ? "a" : "w", mode: 0o600 }));
  if (received < bytes) throw new Error(`it broke off after ${received} of ${bytes} bytes`);
}

export async function sha256Of(file: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file), hash);
  return hash.digest("hex");
}

function open({ url, signal, inactivityMs = INACTIVITY_MS }: DownloadOptions, from: number): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const send = url.startsWith("https:") ? httpsRequest : httpRequest;
    const headers = { connection: "close", ...(from > 0 ? { range: `bytes=${from}-` } : {}) };
    const call = send(url, { agent: false, signal, headers, timeout: inactivityMs });
    let silent: { destroy(error: Error): void } = call;
    call.once("timeout", () => silent.destroy(new Error(`nothing came for ${inactivityMs / 1000} s`)));
    call.once("error", reject);
    call.once("response", (response) => {
      silent = response;
      const { statusCode } = response;
      if (statusCode === 200 || (statusCode === 206 && startsAt(response) === from)) {
        resolve(response);
        return;
      }
      call.destroy();
      reject(new Error(`the platform host answered ${statusCode}`));
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
