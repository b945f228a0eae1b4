import { lookup as systemLookup } from "node:dns/promises";
import { isIP } from "node:net";
import { isPublicAddress } from "../inference/public-address.ts";
import { asText, parseBaseUrl, wrongBaseUrl } from "./base-url-form.ts";

export interface BaseUrlRules {
  /** Whether plain http and addresses inside private networks will do too (`providers.allowPrivate`). */
  readonly allowPrivate: boolean;
  /** For tests: the system's resolver otherwise. */
  readonly lookup?: Lookup;
}

export type Lookup = (
  host: string,
  options: { readonly all: true },
) => Promise<readonly { readonly address: string }[]>;

const LOOKUP_MS = 2000;
/** Names that mean this machine or this network wherever they are asked for (RFC 6761, 6762, 8375), and what clouds use inside. */
const LOCAL_NAME = /(^|\.)(localhost|local|internal|intranet|lan|home\.arpa)$/;

/**
 * A project's base URL in one form, judged before it is written (design §8, no SSRF). Each connection judges again what the name means by
 * then: this here is for people, who should learn of a mistake at once.
 * @throws DomainError invalid_request
 */
export async function acceptBaseUrl(
  text: string,
  { allowPrivate, lookup = systemLookup }: BaseUrlRules,
): Promise<string> {
  const url = parseBaseUrl(text);
  if (allowPrivate) return asText(url);
  if (url.protocol !== "https:") throw wrongBaseUrl("must be https");
  const host = url.hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
  if (isIP(host) !== 0) {
    if (!isPublicAddress(host)) throw wrongBaseUrl("must lead to a public address");
  } else if (LOCAL_NAME.test(host) || !host.includes(".")) {
    throw wrongBaseUrl("must be a public host's name");
  } else if (await leadsInside(host, lookup)) {
    // The address is not told: nobody outside has to learn what names mean in here.
    throw wrongBaseUrl("must lead to a public address, and this name does not");
  }
  return asText(url);
}

/** A name that cannot be resolved just now is let pass: the check of the provider says so, and every call does. */
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
