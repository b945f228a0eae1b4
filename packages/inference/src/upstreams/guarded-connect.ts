import { lookup as dnsLookup, type LookupAddress, type LookupOptions } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { getCACertificates } from "node:tls";
import { proxyConnector } from "@fairlead/wire/proxy/proxy-connector";
import { NO_PROXIES, type ProxyRules } from "@fairlead/wire/proxy/proxy-rules";
import { buildConnector } from "undici";
import { isPublicAddress } from "./public-address.ts";

/** A host without a public address; no connection was attempted. */
export class PrivateAddressError extends Error {
  override readonly name = "PrivateAddressError";
}

export interface GuardedConnectOptions {
  readonly connectMs: number;
  readonly allowPrivate: boolean;
  /** For tests; default: the system's resolver. */
  readonly lookup?: typeof dnsLookup | undefined;
  /** PEM of certificate authorities in addition to the system's. */
  readonly authorities?: readonly string[];
  readonly proxies?: ProxyRules;
  /** The proxy resolves names and rejects internal ones. */
  readonly trustResolution?: boolean;
}

/** Addresses of a name that a proxy is asked to connect to. */
const MAX_ADDRESSES = 3;

/**
 * Connects to upstreams over HTTP/1.1 only: a single HTTP/2 session would serialize generations. Unless private addresses are allowed,
 * all addresses of a name must be public. The check uses the lookup of the connection itself, to prevent DNS rebinding.
 */
export function upstreamConnector(options: GuardedConnectOptions): buildConnector.connector {
  const { connectMs, allowPrivate, proxies = NO_PROXIES, trustResolution = false, lookup = dnsLookup } = options;
  const trusted = trustResolution ? checkLiteral : (host: string) => publicAddresses(host, lookup);
  return proxyConnector(directConnector(options), { proxies, connectMs, resolve: allowPrivate ? undefined : trusted });
}

function directConnector(options: GuardedConnectOptions): buildConnector.connector {
  const { connectMs, allowPrivate, lookup = dnsLookup, authorities = [] } = options;
  const connect = buildConnector({
    timeout: connectMs,
    allowH2: false,
    ...(authorities.length === 0 ? {} : { ca: [...getCACertificates(), ...authorities] }),
    lookup: allowPrivate ? (lookup as LookupFunction) : guarded(lookup),
  });
  if (allowPrivate) return connect;
  return (target, callback) => {
    // Addresses are not looked up.
    const address = target.hostname.replace(/^\[|\]$/g, "");
    if (isIP(address) !== 0 && !isPublicAddress(address)) callback(refused(address), null);
    else connect(target, callback);
  };
}

/** For a proxy, which connects to the address without another lookup. @throws PrivateAddressError */
async function publicAddresses(host: string, lookup: typeof dnsLookup): Promise<readonly string[]> {
  const { promise, resolve, reject } = Promise.withResolvers<readonly LookupAddress[]>();
  guarded(lookup)(host, { all: true }, (error, found) => {
    if (error === null && Array.isArray(found)) resolve(found);
    else if (error instanceof PrivateAddressError) reject(error);
    else
      reject(
        new Error(`${host} cannot be resolved here (proxy.trustResolution leaves resolution to the proxy)`, {
          cause: error,
        }),
      );
  });
  return (await promise).slice(0, MAX_ADDRESSES).map(({ address }) => address);
}

/** @throws PrivateAddressError */
async function checkLiteral(host: string): Promise<readonly string[]> {
  if (isIP(host) !== 0 && !isPublicAddress(host)) throw refused(host);
  return [host];
}

function guarded(lookup: typeof dnsLookup): LookupFunction {
  return (hostname, options, callback) => {
    const all: LookupOptions & { readonly all: true } = { ...options, all: true };
    lookup(hostname, all, (error, addresses) => {
      if (error !== null) {
        callback(error, "");
        return;
      }
      const [first] = addresses;
      const isPrivate = addresses.some(({ address }: LookupAddress) => !isPublicAddress(address));
      if (first === undefined || isPrivate) callback(refused(hostname), "");
      else if (options.all) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };
}

function refused(host: string): PrivateAddressError {
  return new PrivateAddressError(`${host} has an address that is not public`);
}
