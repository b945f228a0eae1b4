/** Which addresses a project may have requests sent to: those of the public internet, and no others (decisions/0018). */

/** `[network, prefix length]`; IANA's special-purpose registries, and what clouds serve their machines' credentials from. */
const CLOSED_V4: readonly (readonly [string, number])[] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["168.63.129.16", 32],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
];

/** Within global unicast: tunnels that lead to an IPv4 address (Teredo, 6to4), and documentation. */
const CLOSED_V6: readonly (readonly [string, number])[] = [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
];
/** All of IPv6 that is routed. Mapped and translated IPv4 (`::ffff:…`, `64:ff9b::…`), link-local and private lie outside it. */
const GLOBAL_UNICAST_V6 = ["2000::", 3] as const;

/** @param address as a resolver gives it. What is no address is not public either. */
export function isPublicAddress(address: string): boolean {
  const v4 = parseV4(address);
  if (v4 !== null) return !CLOSED_V4.some(([network, length]) => isWithin(v4, parseV4(network), length));
  const v6 = parseV6(address);
  if (v6 === null || !isWithin(v6, parseV6(GLOBAL_UNICAST_V6[0]), GLOBAL_UNICAST_V6[1])) return false;
  return !CLOSED_V6.some(([network, length]) => isWithin(v6, parseV6(network), length));
}

/** An address as its bits. */
interface Bits {
  readonly value: bigint;
  readonly size: 32 | 128;
}

function isWithin(address: Bits, network: Bits | null, length: number): boolean {
  const rest = BigInt(address.size - length);
  return network !== null && address.value >> rest === network.value >> rest;
}

function parseV4(text: string): Bits | null {
  const parts = text.split(".");
  if (parts.length !== 4 || !parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) < 256)) return null;
  return { value: joined(parts.map(BigInt), 8n), size: 32 };
}

/** No zone, and no dotted tail: of those that resolvers write with one, none is public. */
function parseV6(text: string): Bits | null {
  const halves = text.split("::");
  if (halves.length > 2) return null;
  const [before = [], after = []] = halves.map((half) => (half === "" ? [] : half.split(":")));
  const missing = 8 - before.length - after.length;
  if (halves.length === 2 ? missing < 1 : missing !== 0) return null;
  const groups = [...before, ...Array.from({ length: missing }, () => "0"), ...after];
  if (!groups.every((group) => /^[\da-f]{1,4}$/i.test(group))) return null;
  return {
    value: joined(
      groups.map((group) => BigInt(`0x${group}`)),
      16n,
    ),
    size: 128,
  };
}

function joined(parts: readonly bigint[], bits: bigint): bigint {
  return parts.reduce((value, part) => (value << bits) | part, 0n);
}
