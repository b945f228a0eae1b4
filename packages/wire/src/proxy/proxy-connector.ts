import type { Socket } from "node:net";
import { connectThroughProxy, ProxyFailed } from "./proxy-connect.ts";
import { bareHost, type Destination, type ProxyRules } from "./proxy-rules.ts";

/** The part of undici's connector interface that proxies need. */
export type SocketConnector<T extends Destination> = (
  target: T & { readonly httpSocket?: Socket | undefined },
  onOpen: (...result: [error: Error, socket: null] | [error: null, socket: Socket]) => void,
) => void;

export interface ProxyConnectorOptions {
  readonly proxies: ProxyRules;
  /** Timeout in milliseconds for the proxy to connect. */
  readonly connectMs: number;
  /** Targets for the proxy, tried in this order. Default: the host itself. @throws if none is allowed. */
  readonly resolve?: ((host: string) => Promise<readonly string[]>) | undefined;
}

/** @param direct opens direct connections, and TLS over proxied ones. @returns `direct` itself if no proxy is configured */
export function proxyConnector<T extends Destination>(
  direct: SocketConnector<T>,
  { proxies, connectMs, resolve = async (host) => [host] }: ProxyConnectorOptions,
): SocketConnector<T> {
  if (proxies.https === null && proxies.http === null) return direct;
  return (target, onOpen) => {
    const proxy = proxies.find(target);
    if (proxy === null) {
      direct(target, onOpen);
      return;
    }
    const isSecure = target.protocol === "https:";
    const port = Number(target.port) || (isSecure ? 443 : 80);
    const open = async (): Promise<Socket> => {
      const hosts = await resolve(bareHost(target.hostname));
      const timeoutMs = Math.ceil(connectMs / hosts.length);
      let failure: unknown = new Error(`${target.hostname} has no address`);
      for (const host of hosts) {
        try {
          return await connectThroughProxy({ proxy, host, port, timeoutMs });
        } catch (error) {
          failure = error;
          // Try another address only if the proxy failed to connect to this one.
          if (!(error instanceof ProxyFailed && error.status !== null && error.status >= 500)) throw error;
        }
      }
      throw failure;
    };
    open().then(
      (socket) => {
        if (isSecure) direct({ ...target, httpSocket: socket }, onOpen);
        else onOpen(null, socket);
      },
      (error: Error) => onOpen(error, null),
    );
  };
}
