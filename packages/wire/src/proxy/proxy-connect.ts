import { request as httpRequest, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import { isIP, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { connect as tlsConnect } from "node:tls";
import { bareHost, type Destination, type ProxyServer } from "./proxy-rules.ts";

/** Connections through an HTTP proxy, one CONNECT each, for any protocol. */

const DEFAULT_MS = 10_000;

export interface ProxyConnectOptions {
  readonly proxy: ProxyServer;
  /** A name, resolved by the proxy, or an IP address. */
  readonly host: string;
  readonly port: number;
  /** Timeout in milliseconds for the proxy's response. */
  readonly timeoutMs?: number | undefined;
}

/** The proxy could not be reached, or refused the connection. */
export class ProxyFailed extends Error {
  override readonly name = "ProxyFailed";
  /** The proxy's status; null if it sent none. */
  readonly status: number | null;

  constructor(
    message: string,
    { status = null, cause }: { readonly status?: number | null; readonly cause?: unknown },
  ) {
    super(message, { cause });
    this.status = status;
  }
}

/** @throws ProxyFailed */
export function connectThroughProxy(options: ProxyConnectOptions): Promise<Socket> {
  const { proxy, port, timeoutMs = DEFAULT_MS } = options;
  const target = `${isIP(options.host) === 6 ? `[${options.host}]` : options.host}:${port}`;
  const send = proxy.url.startsWith("https:") ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const asked = send(proxy.url, {
      method: "CONNECT",
      path: target,
      agent: false,
      headers: {
        host: target,
        ...(proxy.authorization === null ? {} : { "proxy-authorization": proxy.authorization }),
      },
    });
    // Not `AbortSignal.timeout`, which could also abort the open connection.
    const timer = setTimeout(() => asked.destroy(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
    asked.once("connect", ({ statusCode = 0 }, socket, head) => {
      clearTimeout(timer);
      if (statusCode >= 200 && statusCode < 300) {
        if (head.length > 0) socket.unshift(head);
        resolve(socket as Socket);
        return;
      }
      socket.destroy();
      reject(new ProxyFailed(refusal(statusCode, proxy.url, target), { status: statusCode }));
    });
    asked.on("error", (cause) => {
      clearTimeout(timer);
      reject(new ProxyFailed(`the proxy ${proxy.url} cannot be reached: ${reasonOf(cause)}`, { cause }));
    });
    asked.end();
  });
}

function refusal(status: number, proxy: string, target: string): string {
  // Some proxies send 401 for a wrong password.
  if (status === 407 || status === 401)
    return `the proxy ${proxy} requires a valid user and password (status ${status})`;
  return `the proxy ${proxy} did not connect to ${target} (status ${status})`;
}

/** Some network errors have a code but no message. */
function reasonOf(error: Error): string {
  return error.message || ("code" in error ? String(error.code) : error.name);
}

export interface TlsTrust {
  /** PEM of certificate authorities that replace the system's. */
  readonly ca?: string | string[] | undefined;
}

/** Options with which requests by Node and ws open their connection elsewhere. */
export type ConnectionOptions = Pick<RequestOptions, "createConnection" | "defaultPort">;

/** @returns nothing for a direct connection. Must not be combined with an agent. */
export function connectionVia(
  proxy: ProxyServer | null,
  destination: Destination,
  { ca }: TlsTrust = {},
): ConnectionOptions {
  if (proxy === null) return {};
  const host = bareHost(destination.hostname);
  const isSecure = destination.protocol === "https:" || destination.protocol === "wss:";
  const defaultPort = isSecure ? 443 : 80;
  const port = Number(destination.port) || defaultPort;
  const secured = (socket: Socket): Duplex =>
    isSecure
      ? tlsConnect({
          socket,
          host,
          ...(isIP(host) === 0 ? { servername: host } : {}),
          ...(ca === undefined ? {} : { ca }),
          ALPNProtocols: ["http/1.1"],
        })
      : socket;
  return {
    // Node gets it from the agent; without one, it would add the port to `Host`.
    defaultPort,
    createConnection: (_options, onCreated) => {
      // The type does not allow an error without a stream.
      const onFailed = onCreated as (cause: Error) => void;
      connectThroughProxy({ proxy, host, port })
        .then(secured)
        .then((stream) => onCreated(null, stream), onFailed);
      return undefined;
    },
  };
}
