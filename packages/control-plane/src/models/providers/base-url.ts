import { lookup as systemLookup } from "node:dns/promises";
import { isIP } from "node:net";
import { isPublicAddress } from "@fairlead/inference/upstreams/public-address";
import { asText, parseBaseUrl, wrongBaseUrl } from "./base-url-form.ts";

export interface BaseUrlRules {
  /** Whether plain http and private addresses are allowed (`providers.allowPrivate`). */
  readonly allowPrivate: boolean;
  /** Whether a proxy resolves names (`proxy.trustResolution`), so that local resolution is meaningless. */
  readonly trustResolution?: boolean;
  /** For tests; default: the system's resolver. */
  readonly lookup?: Lookup;
}

export type Lookup = (
  host: string,
  options: { readonly all: true },
) => Promise<readonly { readonly address: string }[]>;

/** Required by presets of local servers (`http://127.0.0.1`). */
const ALLOWED_BY =
  "; an administrator can allow plain http and private addresses for projects with the setting `providers.allowPrivate`, " +
  "or add the provider to `providers.platform`";
const LOOKUP_MS = 2000;
/** Names of local machines and networks (RFC 6761, 6762, 8375), and internal names of clouds. */
const LOCAL_NAME = /(^|\.)(localhost|local|internal|intranet|lan|home\.arpa)$/;

/**
 * Normalizes and checks a project's base URL when it is written (SSRF). Connections check the resolved address again; this check gives
 * users early feedback.
 * @throws DomainError invalid_request
 */
export async function acceptBaseUrl(
  text: string,
  { allowPrivate, trustResolution = false, lookup = systemLookup }: BaseUrlRules,
): Promise<string> {
  const url = parseBaseUrl(text);
  if (allowPrivate) return asText(url);
  if (url.protocol !== "https:") throw wrongBaseUrl(`must be https${ALLOWED_BY}`);
  const host = url.hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
  if (isIP(host) !== 0) {
    if (!isPublicAddress(host)) throw wrongBaseUrl(`must have a public address${ALLOWED_BY}`);
  } else if (LOCAL_NAME.test(host) || !host.includes(".")) {
    throw wrongBaseUrl(`must have a public host name${ALLOWED_BY}`);
  } else if (!trustResolution && (await leadsInside(host, lookup))) {
    // The address is not included, so that internal resolution is not revealed.
    throw wrongBaseUrl("must resolve to a public address, but does not");
  }
  return asText(url);
}

/** Unresolvable names pass here; the provider check and calls report them. */
async function leadsInside(host: string, lookup: Lookup): Promise<boolean> {
  const late = Promise.withResolvers<readonly { readonly address: string }[]>();
  const timer = setTimeout(() => late.resolve([]), LOOKUP_MS);
  try {
    const found = await Promise.race([lookup(host, { all: true }), late.promise]);
    return found.some(({ address }) => !isPublicAddress(address));
  } catch {
    return false;
  } finally {
    clearTimeout(timer);
  }
}
