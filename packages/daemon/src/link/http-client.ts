import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";

/** A JSON call to the platform host or to an engine on loopback. Redirects are not followed: a credential must not travel. */
export interface HttpRequest {
  readonly method: "GET" | "POST";
  readonly url: string;
  readonly bearer?: string;
  readonly body?: unknown;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** @throws Error where no whole answer came: down, silent for too long, cut off, too large, aborted. */
export type HttpClient = (request: HttpRequest) => Promise<HttpAnswer>;

const MAX_ANSWER_BYTES = 1024 * 1024;

/** `node:http` and not fetch: loading undici costs the daemon 29 MB. */
export const nodeHttpClient: HttpClient = (request) =>
  new Promise((resolve, reject) => {
    const body = request.body === undefined ? null : JSON.stringify(request.body);
    const open = request.url.startsWith("https:") ? httpsRequest : httpRequest;
    const timeout = AbortSignal.timeout(request.timeoutMs);
    const call = open(request.url, {
      method: request.method,
      agent: false,
      signal: request.signal ? AbortSignal.any([request.signal, timeout]) : timeout,
      headers: {
        accept: "application/json",
        connection: "close",
        ...(body === null ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(body) }),
        ...(request.bearer === undefined ? {} : { authorization: `Bearer ${request.bearer}` }),
      },
    });
    const fail = (cause: unknown): void => {
      const why = timeout.aborted ? `no answer within ${request.timeoutMs} ms` : "the call failed";
      reject(new Error(`${request.method} ${new URL(request.url).origin}: ${why}`, { cause }));
    };
    call.once("error", fail);
    call.once("response", (response) => {
      readText(response).then((text) => {
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
      }, fail);
    });
    call.end(body);
  });

async function readText(response: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of response as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > MAX_ANSWER_BYTES) throw new Error(`the answer is over ${MAX_ANSWER_BYTES} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}

/** @returns the answer's JSON, or null for anything else. */
export function jsonOf(answer: HttpAnswer): unknown {
  try {
    return JSON.parse(answer.text);
  } catch {
    return null;
  }
}

/** @returns `Retry-After` in milliseconds (the seconds form), or null. */
export function retryAfterMs(headers: IncomingHttpHeaders): number | null {
  const seconds = Number(headers["retry-after"] ?? Number.NaN);
  return Number.isFinite(seconds) && seconds >= 0 ? Math.min(seconds, 3600) * 1000 : null;
}
