import { lookup as dnsLookup, type LookupAddress, type LookupOptions } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { getCACertificates } from "node:tls";
import { buildConnector } from "undici";
import { isPublicAddress } from "./public-address.ts";

/** A host whose address is not public; no connection was tried. */
export class PrivateAddressError extends Error {
  override readonly name = "PrivateAddressError";
}

export interface ConnectOptions {
  readonly connectMs: number;
  readonly allowPrivate: boolean;
  /** For tests: the system's resolver otherwise. */
  readonly lookup?: typeof dnsLookup | undefined;
  /** PEM: who may sign certificates, besides the system's authorities. */
  readonly authorities?: readonly string[];
}

/**
 * Opens connections to upstreams, over HTTP/1.1 alone: one HTTP/2 session would serialise whole generations behind each other.
 * Unless private ones are allowed, every address that the name has must be public. It is looked at in the very look-up whose result
 * is connected to, so that a name cannot change its meaning in between (DNS rebinding).
 */
export function upstreamConnector(options: ConnectOptions): buildConnector.connector {
  const { connectMs, allowPrivate, lookup = dnsLookup, authorities = [] } = options;
  const connect = buildConnector({
    timeout: connectMs,
    allowH2: false,
    ...(authorities.length === 0 ? {} : { ca: [...getCACertificates(), ...authorities] }),
    lookup: allowPrivate ? (lookup as LookupFunction) : guarded(lookup),
  });
  if (allowPrivate) return connect;
  return (target, callback) => {
    // For an address nothing is looked up.
    const address = target.hostname.replace(/^\[|\]$/g, "");
    if (isIP(address) !== 0 && !isPublicAddress(address)) callback(refused(address), null);
    else connect(target, callback);
  };
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
