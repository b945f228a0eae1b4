import { describe, expect, test } from "vitest";
import { machineName, parsePlanId, wantedLocations } from "./machine.ts";
import type { MachinePlan } from "./machine-provider.ts";

const place = (name: string, available = true): MachinePlan["locations"][number] => ({
  name,
  available,
  monthlyPrice: null,
  hourlyPrice: null,
});
const PLAN: MachinePlan = {
  type: "m1",
  cores: 1,
  memoryMb: 1024,
  diskGb: 10,
  gpu: null,
  locations: [place("north", false), place("south"), place("west")],
};

describe("a plan ID", () => {
  test.each([
    ["hetzner:cx23", { provider: "hetzner", type: "cx23" }],
    ["docker:debian-12", { provider: "docker", type: "debian-12" }],
    ["a:b:c", { provider: "a", type: "b:c" }],
  ])("%s names a provider and its type", (id, name) => expect(parsePlanId(id)).toEqual(name));

  test.each(["byo", "", ":", "hetzner:", ":cx23", "Hetzner:cx23", "'; drop table--:x", "<b>:x"])(
    "%j is not a plan ID",
    (id) => expect(parsePlanId(id)).toBeNull(),
  );
});

describe("the requested locations of a machine", () => {
  test.each([
    ["south", ["south"]],
    ["west,north", ["west", "north"]],
    [" west , west ,", ["west"]],
    ["any", ["south", "west", "north"]],
    [undefined, ["south", "west", "north"]],
    ["", ["south", "west", "north"]],
    ["north,any", ["north", "south", "west"]],
  ])("%j is tried as %j, with locations in stock first if no order is given", (location, wanted) =>
    expect(wantedLocations(PLAN, location)).toEqual(wanted),
  );

  test.each(["moon", "south,moon", "<script>", "south;west"])(
    "%j is rejected, and the available locations are named",
    (location) => expect(() => wantedLocations(PLAN, location)).toThrow(/south, west, north/),
  );

  test("a plan without any location is rejected", () => {
    expect(() => wantedLocations({ ...PLAN, locations: [] }, undefined)).toThrow(/not offered anywhere/);
  });
});

describe("a machine's name", () => {
  test("is a host name of at most 63 characters that contains the unique part of the node's ID", () => {
    const id = "nod_01kc3b6q2v8r5x0m7n4t9w1yza";
    expect(machineName({ id, identifier: "attic" })).toBe("attic-01kc3b6q2v8r5x0m7n4t9w1yza");
    const long = machineName({ id, identifier: `${"a".repeat(35)}-bcde` });
    expect(long).toBe(`${"a".repeat(35)}-01kc3b6q2v8r5x0m7n4t9w1yza`);
    expect(long).toMatch(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])$/);
  });
});
