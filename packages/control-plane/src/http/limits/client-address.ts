import type { IncomingMessage } from "node:http";
import { BlockList, isIP, isIPv6 } from "node:net";
import type { FastifyRequest } from "fastify";

/** The client's address: the peer, or what a trusted proxy reports. */

/** @returns an IP address, IPv4 in its plain form; "" if the socket has none. */
export function clientAddress(request: FastifyRequest): string {
  // A trusted proxy may forward arbitrary text from its client; accept only an IP address.
  const address = isIP(request.ip ?? "") === 0 ? request.socket.remoteAddress : request.ip;
  return plainAddress(address);
}

/** The same for requests that bypass the framework. */
export function clientAddresses(trustedProxies: readonly string[]): (request: IncomingMessage) => string {
  const isTrusted = trustedPeers(trustedProxies);
  return ({ socket, headers }) => {
    let client = plainAddress(socket.remoteAddress);
    const forwarded = headers["x-forwarded-for"]?.toString().split(",") ?? [];
    for (const before of forwarded.toReversed()) {
      const address = plainAddress(before.trim());
      if (!isTrusted(client) || isIP(address) === 0) break;
      client = address;
    }
    return client;
  };
}

/** @param trustedProxies addresses and CIDR networks. */
export function trustedPeers(trustedProxies: readonly string[]): (address: string) => boolean {
  const trusted = new BlockList();
  for (const proxy of trustedProxies) {
    const [address = "", prefix] = proxy.split("/");
    const family = isIPv6(address) ? "ipv6" : "ipv4";
    if (prefix === undefined) trusted.addAddress(address, family);
    else trusted.addSubnet(address, Number(prefix), family);
  }
  return (address) => isIP(address) !== 0 && trusted.check(address, isIPv6(address) ? "ipv6" : "ipv4");
}

/** IPv4 in its plain form, even on an IPv6 socket. */
export function plainAddress(address: string | undefined): string {
  return (address ?? "").replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, "");
}

/** The part of an address that a client cannot change at will: the network for IPv6, since every host has 2^64 addresses. */
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

/** Whether a text is an IP address or a CIDR network. */
export function isNetwork(text: string): boolean {
  const [address = "", prefix, ...more] = text.split("/");
  const family = isIP(address);
  if (family === 0 || more.length > 0) return false;
  if (prefix === undefined) return true;
  return /^\d{1,3}$/.test(prefix) && Number(prefix) <= (family === 4 ? 32 : 128);
}
