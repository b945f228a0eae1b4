import fc from "fast-check";
import { afterEach, describe, expect, test } from "vitest";
import { STORES } from "../../../testing.fixture.ts";
import { type ProvisioningFixture, provisioningFixture, type SettleOptions } from "./provisioning.fixture.ts";

/** Faults that strike while the program dies and comes back. */
interface World {
  readonly full: readonly string[];
  readonly failLater: number;
  readonly hiddenFromLists: number;
  readonly slowAddress: number;
}

const CALM: World = { full: [], failLater: 0, hiddenFromLists: 0, slowAddress: 0 };
const WORLDS: readonly (readonly [string, World])[] = [
  ["without faults", CALM],
  ["when the first location is full", { ...CALM, full: ["north"] }],
  ["when an accepted machine fails later", { ...CALM, failLater: 1 }],
  ["when lists lag behind", { ...CALM, hiddenFromLists: 2 }],
  ["when the address is late", { ...CALM, slowAddress: 2 }],
];

const anyWorld: fc.Arbitrary<World> = fc.record({
  full: fc.subarray(["north", "south"]),
  failLater: fc.nat(2),
  hiddenFromLists: fc.nat(3),
  slowAddress: fc.nat(2),
});
/** The places at which the program dies. */
const anyDeaths = fc.array(fc.nat(25), { maxLength: 4 });

describe.each(STORES)("a machine's journal on $name", ({ open }) => {
  const fixtures: ProvisioningFixture[] = [];
  afterEach(async () => {
    for (const { fixture } of fixtures.splice(0)) await fixture.close();
  });

  async function live(
    world: World,
    options: SettleOptions,
  ): Promise<ProvisioningFixture & { nodeId: string; died: number }> {
    const made = await provisioningFixture(open);
    fixtures.push(made);
    Object.assign(made.provider.faults, world);
    const { id: nodeId } = await made.create({ location: "north,south" });
    const died = await made.settle(nodeId, options);
    return { ...made, nodeId, died };
  }

  test.each(WORLDS)(
    "%s: after a crash at any point, a restart ends with exactly one enrolled machine",
    async (_name, world) => {
      const calm = await live(world, {});
      const places = calm.mortal.passed;
      expect(places).toBeGreaterThan(6);
      for (let place = 0; place < places; place += 1) {
        const { provider, nodeId, died, machines, fixture } = await live(world, { deaths: [place] });
        expect(died, `place ${place}`).toBe(1);
        expect(
          provider.living.map(({ request }) => request.label),
          `place ${place}`,
        ).toEqual([nodeId]);
        expect(await machines.find(nodeId), `place ${place}`).toMatchObject({
          step: "serving",
          machineId: provider.living[0]?.machine.id,
        });
        expect(await fixture.statusOf(nodeId), `place ${place}`).toBe("starting");
        await fixtures.pop()?.fixture.close();
      }
    },
    60_000,
  );

  test("a deletion after a lost response waits for the provider's delayed list, and leaves no machine", async () => {
    const calm = await live(CALM, {});
    let left = 0;
    for (let place = 0; place < calm.mortal.passed; place += 1) {
      // The list shows the machine once it has been asked three times.
      const world = { ...CALM, hiddenFromLists: 3 };
      const { provider, machines, nodeId } = await live(world, { deaths: [place], deleteAt: 2 });
      left += provider.living.length;
      expect(await machines.find(nodeId), `place ${place}`).toBeNull();
      await fixtures.pop()?.fixture.close();
    }
    expect(left).toBe(0);
  });

  test("a deletion at any step, with crashes at any point, leaves no machine and no node", async () => {
    await fc.assert(
      fc.asyncProperty(anyWorld, anyDeaths, fc.nat(14), async (world, deaths, deleteAt) => {
        const { provider, nodeId, machines, fixture } = await live(world, { deaths, deleteAt });
        expect(provider.living).toEqual([]);
        expect(await machines.find(nodeId)).toBeNull();
        expect(await fixture.statusOf(nodeId)).toBeUndefined();
        await fixtures.pop()?.fixture.close();
      }),
      { numRuns: 40 },
    );
  }, 60_000);

  test("any faults and crashes end with one machine, or with no machine and a reason for the failure", async () => {
    await fc.assert(
      fc.asyncProperty(anyWorld, anyDeaths, async (world, deaths) => {
        const { provider, nodeId, machines, fixture } = await live(world, { deaths });
        const record = await machines.find(nodeId);
        const node = await fixture.stores.nodes.find(nodeId);
        if (record?.step === "serving") {
          expect(provider.living.map(({ machine }) => machine.id)).toEqual([record.machineId]);
          expect(node).toMatchObject({ status: "starting", publicIp: "192.0.2.20" });
        } else {
          expect(record?.step).toBe("failed");
          expect(provider.living).toEqual([]);
          expect(node).toMatchObject({
            status: "failed",
            statusMessage: expect.stringMatching(/full|no host was found/),
          });
        }
        await fixtures.pop()?.fixture.close();
      }),
      { numRuns: 40 },
    );
  }, 60_000);
});
