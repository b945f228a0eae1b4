import { BlockList, isIP } from "node:net";

/** Hosts that are reached without a proxy: `NO_PROXY`, in the forms that curl and Go know. */

/** @param host lower-case, IPv6 without brackets */
export type HostMatcher = (host: string, port: number) => boolean;

/**
 * Entries are separated by commas or spaces: `*`, `example.com` (its subdomains as well, as `.example.com`), `*.example.com` (its
 * subdomains alone), an IP address, a CIDR range; each with `:port` or without. Addresses are compared with addresses: no name is
 * looked up. What has no known form matches nothing.
 */
export function parseNoProxy(text: string): HostMatcher {
  const matchers = text
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((entry) => entry !== "")
    .map(matcherOf);
  return (host, port) => matchers.some((matches) => matches(host, port));
}

function matcherOf(entry: string): HostMatcher {
  const { host, port: only } = splitPort(entry);
  const matches = hostMatcher(host);
  return (target, port) => (only === null || only === port) && matches(target);
}

/** `[::1]:8080`, `::1`, `example.com:8080` */
function splitPort(entry: string): { readonly host: string; readonly port: number | null } {
  const colon = entry.lastIndexOf(":");
  const tail = entry.slice(colon + 1);
  const isBare = isIP(entry.split("/", 1)[0] ?? "") === 6;
  if (colon === -1 || isBare || tail === "" || !/^\d{1,5}$/.test(tail))
    return { host: withoutBrackets(entry), port: null };
  return { host: withoutBrackets(entry.slice(0, colon)), port: Number(tail) };
}

function withoutBrackets(host: string): string {
  return host.startsWith("[") && host.endsWith("]") ? host.slice(1, -1) : host;
}

function hostMatcher(host: string): (target: string) => boolean {
  if (host === "*") return () => true;
  const range = rangeOf(host);
  if (range !== null) return (target) => isIP(target) !== 0 && range.check(target, familyOf(target));
  if (host === "" || host.includes("/")) return () => false;
  if (host.startsWith("*.")) return (target) => isIP(target) === 0 && target.endsWith(host.slice(1));
  const name = host.replace(/^\./, "").replace(/\.$/, "");
  return (target) => target === name || (isIP(target) === 0 && target.endsWith(`.${name}`));
}

/** Null for a name, and for a range that is none. */
function rangeOf(host: string): BlockList | null {
  const [address = "", bits] = host.split("/");
  const version = isIP(address);
  if (version === 0) return null;
  const most = version === 4 ? 32 : 128;
  const length = bits === undefined ? most : Number(bits || Number.NaN);
  if (!(Number.isInteger(length) && length >= 0 && length <= most)) return null;
  const list = new BlockList();
  list.addSubnet(address, length, familyOf(address));
  return list;
}

function familyOf(address: string): "ipv4" | "ipv6" {
  return isIP(address) === 6 ? "ipv6" : "ipv4";
}
