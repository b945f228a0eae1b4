import { isIP, isIPv6 } from "node:net";
import type { FastifyRequest } from "fastify";

/** Where a request came from: the peer, or what a proxy that we trust says of its own peer. */

/** @returns an IP address, IPv4 in its plain form; "" on a socket that has none. */
export function clientAddress(request: FastifyRequest): string {
  // A trusted proxy that passes on what it was told may name anything; only an address is one.
  const address = isIP(request.ip ?? "") === 0 ? request.socket.remoteAddress : request.ip;
  return (address ?? "").replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, "");
}

/** The part of an address that one client cannot change at will: of IPv6 the network, since every host has 2^64 addresses. */
export function networkOf(address: string): string {
  if (!isIPv6(address)) return address;
  const [head = "", tail] = address.split("%", 1)[0]?.split("::") ?? [];
  const before = head === "" ? [] : head.split(":");
  const after = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - before.length - after.length);
  const groups = [...before, ...Array<string>(zeros).fill("0"), ...after];
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":")}::/64`;
}

/** Whether a text is an IP address or a network in CIDR form. */
export function isNetwork(text: string): boolean {
  const [address = "", prefix, ...more] = text.split("/");
  const family = isIP(address);
  if (family === 0 || more.length > 0) return false;
  if (prefix === undefined) return true;
  return /^\d{1,3}$/.test(prefix) && Number(prefix) <= (family === 4 ? 32 : 128);
}
