import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import { request as httpsRequest, type RequestOptions } from "node:https";
import { parseJson } from "@fairlead/protocol/values/parse-json";
import { connectionVia, type TlsTrust } from "@fairlead/wire/proxy/proxy-connect";
import { NO_PROXIES, type ProxyRules } from "@fairlead/wire/proxy/proxy-rules";

/** A JSON call to the platform host or a local engine. Does not follow redirects, which could leak credentials. */
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

/** @throws Error without a complete response: unreachable, timeout, cut off, too large or aborted. */
export type HttpClient = (request: HttpRequest) => Promise<HttpAnswer>;

const MAX_ANSWER_BYTES = 1024 * 1024;

/** Uses `node:http`: loading undici for fetch takes 29 MB. */
export function createHttpClient(proxies: Pick<ProxyRules, "find">): HttpClient {
  return (request) => send(request, proxies);
}

/** Without a proxy. */
export const nodeHttpClient = createHttpClient(NO_PROXIES);

function send(request: HttpRequest, proxies: Pick<ProxyRules, "find">): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const body = request.body === undefined ? null : JSON.stringify(request.body);
    const url = new URL(request.url);
    const open = url.protocol === "https:" ? httpsRequest : httpRequest;
    const timeout = AbortSignal.timeout(request.timeoutMs);
    const call = open(url, {
      method: request.method,
      ...connectionOf(url, proxies),
      signal: request.signal ? AbortSignal.any([request.signal, timeout]) : timeout,
      headers: {
        accept: "application/json",
        connection: "close",
        ...(body === null ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(body) }),
        ...(request.bearer === undefined ? {} : { authorization: `Bearer ${request.bearer}` }),
      },
    });
    const fail = (cause: unknown): void => {
      const why = timeout.aborted ? `no response within ${request.timeoutMs} ms` : "the call failed";
      reject(new Error(`${request.method} ${url.origin}: ${why}`, { cause }));
    };
    // An aborted request may emit a second error.
    call.on("error", fail);
    call.once("response", (response) => {
      readText(response).then((text) => {
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
      }, fail);
    });
    call.end(body);
  });
}

/** An unpooled connection. */
export function connectionOf(url: URL, proxies: Pick<ProxyRules, "find">, trust: TlsTrust = {}): RequestOptions {
  const proxy = proxies.find(url);
  return proxy === null ? { agent: false, ...trust } : connectionVia(proxy, url, trust);
}

async function readText(response: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of response as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > MAX_ANSWER_BYTES) throw new Error(`the response exceeds ${MAX_ANSWER_BYTES} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}

/** @returns the parsed JSON, or null if the body is not JSON. */
export function jsonOf(answer: HttpAnswer): unknown {
  try {
    return parseJson(answer.text);
  } catch {
    return null;
  }
}

/** @returns `Retry-After` in milliseconds (the seconds form), or null. */
export function retryAfterMs(headers: IncomingHttpHeaders): number | null {
  const seconds = Number(headers["retry-after"] ?? Number.NaN);
  return Number.isFinite(seconds) && seconds >= 0 ? Math.min(seconds, 3600) * 1000 : null;
}
