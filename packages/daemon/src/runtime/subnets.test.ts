import fc from "fast-check";
import { expect, test } from "vitest";
import { DEFAULT_WORKLOAD_SUBNETS, freeSubnet, isPool, rangeOf, routedSubnets } from "./subnets.ts";

test("the first free subnet of the pool is used", () => {
  const free = (...taken: string[]) => freeSubnet("198.19.0.0/28", taken)?.subnet ?? null;
  expect(freeSubnet(DEFAULT_WORKLOAD_SUBNETS, [])).toEqual({ subnet: "198.19.0.0/29", gateway: "198.19.0.1" });
  expect(free("198.19.0.0/29")).toBe("198.19.0.8/29");
  expect(free("198.19.0.8/29")).toBe("198.19.0.0/29");
  expect(free("198.19.0.3/32")).toBe("198.19.0.8/29");
  expect(free("198.19.0.0/29", "198.19.0.8/29")).toBeNull();
  expect(free("198.18.0.0/15")).toBeNull();
  expect(free("10.0.0.0/8", "fd00::/64", "0.0.0.0/0", "nonsense")).toBe("198.19.0.0/29");
});

test("a pool has more networks than Docker's own 30 or so", () => {
  const taken: string[] = [];
  for (let count = 0; count < 300; count++) taken.push(freeSubnet(DEFAULT_WORKLOAD_SUBNETS, taken)?.subnet ?? "none");
  expect(new Set(taken).size).toBe(300);
  expect(taken.at(-1)).toBe("198.19.9.88/29");
});

test("a found subnet is in the pool and overlaps none in use, and no result means that none is left", () => {
  const subnets = fc
    .tuple(fc.nat(255), fc.integer({ min: 24, max: 32 }))
    .map(([last, bits]) => `10.1.2.${last}/${bits}`);
  fc.assert(
    fc.property(fc.array(subnets, { maxLength: 40 }), (taken) => {
      const found = rangeOf(freeSubnet("10.1.2.0/24", taken)?.subnet ?? "");
      const isFree = (first: number): boolean =>
        taken.every((subnet) => {
          const range = rangeOf(subnet);
          return range === null || range.last < first || range.first > first + 7;
        });
      const base = rangeOf("10.1.2.0/24")?.first ?? 0;
      const candidates = Array.from({ length: 32 }, (_, index) => base + index * 8).filter(isFree);
      expect(found?.first).toBe(candidates[0]);
    }),
    { seed: 41 },
  );
});

test.each([
  ["198.19.0.0/16", true],
  ["10.0.0.0/13", true],
  ["10.0.0.0/29", true],
  ["10.0.0.0/12", false],
  ["10.0.0.0/30", false],
  ["10.0.0.1/16", false],
  ["10.0.0/16", false],
  ["10.0.0.256/16", false],
  ["fd00::/64", false],
  ["", false],
])("%s can be a pool: %s", (subnet, expected) => expect(isPool(subnet)).toBe(expected));

test("the machine's routes are parsed as the kernel prints them", () => {
  const table = [
    "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT",
    "eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0",
    "tun0\t000013C6\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0",
    "",
  ].join("\n");
  expect(routedSubnets(table)).toEqual(["0.0.0.0/0", "198.19.0.0/16"]);
  expect(freeSubnet(DEFAULT_WORKLOAD_SUBNETS, routedSubnets(table.replace("0000FFFF", "00FFFFFF")))?.subnet).toBe(
    "198.19.1.0/29",
  );
});
