/** IPv4 subnet arithmetic. Pure. */

interface Range {
  readonly first: number;
  readonly last: number;
}

/** Fits this machine's address and a workload's containers (two during an update). */
const NETWORK_BITS = 29;
const SIZE = 2 ** (32 - NETWORK_BITS);

/** From the benchmark range (RFC 2544), which LANs, VPNs, clusters and clouds do not use. */
export const DEFAULT_WORKLOAD_SUBNETS = "198.19.0.0/16";

/** @param subnet `10.0.0.0/8`. @returns null if invalid */
export function rangeOf(subnet: string): Range | null {
  const [, address = "", bits = ""] = /^([\d.]+)\/(\d{1,2})$/.exec(subnet) ?? [];
  const parts = address.split(".").map(Number);
  if (parts.length !== 4 || parts.some((part) => part > 255) || address.includes("..") || Number(bits) > 32)
    return null;
  const value = parts.reduce((sum, part) => sum * 256 + part, 0);
  const size = 2 ** (32 - Number(bits));
  const first = value - (value % size);
  return { first, last: first + size - 1 };
}

/** Whether a pool is valid: an aligned block that fits 1 to 65,536 networks. */
export function isPool(subnet: string): boolean {
  const range = rangeOf(subnet);
  const bits = Number(subnet.split("/")[1]);
  return range !== null && textOf(range.first) === subnet.split("/")[0] && bits >= 13 && bits <= NETWORK_BITS;
}

/** @param taken subnets in use. @returns the first free subnet of the pool and its first address, or null. */
export function freeSubnet(pool: string, taken: readonly string[]): { subnet: string; gateway: string } | null {
  const { first, last } = rangeOf(pool) ?? { first: 0, last: -1 };
  const used = taken
    .flatMap((subnet) => rangeOf(subnet) ?? [])
    // Ignore the default route.
    .filter((range) => range.first <= last && range.last >= first && !(range.first === 0 && range.last === 2 ** 32 - 1))
    .toSorted((a, b) => a.first - b.first);
  let at = first;
  for (const range of used) {
    if (range.first >= at + SIZE) break;
    if (range.last >= at) at = Math.ceil((range.last + 1) / SIZE) * SIZE;
  }
  return at + SIZE - 1 <= last ? { subnet: `${textOf(at)}/${NETWORK_BITS}`, gateway: textOf(at + 1) } : null;
}

/** @param table `/proc/net/route`. @returns the subnets with routes. */
export function routedSubnets(table: string): string[] {
  const rows = table.split("\n").slice(1);
  return rows.flatMap((row) => {
    const [, destination = "", , , , , , mask = ""] = row.split("\t");
    if (!/^[0-9A-F]{8}$/i.test(destination) || !/^[0-9A-F]{8}$/i.test(mask)) return [];
    const bits = swapped(mask).toString(2).replaceAll("0", "").length;
    return [`${textOf(swapped(destination))}/${bits}`];
  });
}

/** The kernel prints addresses in little-endian order. */
function swapped(hex: string): number {
  return Buffer.from(hex, "hex").readUInt32LE();
}

function textOf(value: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join(".");
}
