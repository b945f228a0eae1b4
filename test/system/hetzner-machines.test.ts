import { afterEach, describe, expect, test } from "vitest";
import { HetznerMachines } from "../../packages/control-plane/src/fleet/machines/hetzner/hetzner-machines.ts";
import { machineProviderContract } from "../../packages/control-plane/src/fleet/machines/machine-provider.contract.ts";
import type { MachineRequest } from "../../packages/control-plane/src/fleet/machines/machine-provider.ts";
import { systemClock } from "../../packages/protocol/src/values/clock.ts";
import { FakeHetzner, type FakeOptions } from "../fakes/hetzner/src/fake-hetzner.ts";
import type { Project } from "../fakes/hetzner/src/project.ts";

function machinesAt(fake: FakeHetzner, installationId = "ins_own"): HetznerMachines {
  return new HetznerMachines({ url: fake.url, image: "debian-12", installationId, clock: systemClock });
}

machineProviderContract("Hetzner", async () => {
  // Pages of two: whoever reads the first alone misses machines.
  const fake = await FakeHetzner.start({ maxPerPage: 2, faults: { readsUntilAddress: 1 } });
  const project = fake.addProject("own");
  return {
    provider: machinesAt(fake),
    neighbour: machinesAt(fake, "ins_neighbour"),
    token: fake.addToken(project),
    type: "cx22",
    location: "nbg1",
    missingId: "4711",
    close: async () => {
      expect(project.servers).toEqual([]);
      await fake.close();
    },
  };
});

describe("the adapter for Hetzner", () => {
  const request: MachineRequest = {
    label: "nod_1",
    name: "one",
    type: "cx22",
    location: "nbg1",
    userData: "#!/bin/sh\n",
  };
  let fake: FakeHetzner;
  let project: Project;
  let provider: HetznerMachines;
  let token: string;

  async function start(options: FakeOptions = {}): Promise<void> {
    fake = await FakeHetzner.start(options);
    project = fake.addProject("own");
    token = fake.addToken(project);
    provider = machinesAt(fake);
  }

  afterEach(() => fake.close());

  test("tells a bad token, a read-only one and a good one apart, without making or removing anything", async () => {
    await start();
    await provider.create(token, request);
    await provider.checkToken(token);
    await expect(provider.checkToken("wrong")).rejects.toMatchObject({
      kind: "bad_token",
      providerWords: "unable to authenticate (unauthorized)",
    });
    const readOnly = fake.addToken(project, "read_only");
    await expect(provider.checkToken(readOnly)).rejects.toMatchObject({ kind: "read_only_token" });
    expect(project.servers).toHaveLength(1);
  });

  test("a token of another project sees nothing of the machine", async () => {
    await start();
    const { id } = await provider.create(token, request);
    const foreign = fake.addToken(fake.addProject("other"));
    expect(await provider.get(foreign, id)).toBeNull();
    expect(await provider.findByLabel(foreign, null)).toEqual([]);
    await provider.delete(foreign, id);
    expect(project.servers).toHaveLength(1);
  });

  test.each([
    ["no stock, whatever the list says", { noCapacity: ["cx22@nbg1"] }, "no_capacity"],
    ["a service that is away", { unavailable: 1 }, "unavailable"],
    ["an answer that was lost", { lostAnswers: 1 }, "unavailable"],
  ])("%s is a refusal of its own kind", async (_, faults, kind) => {
    await start();
    Object.assign(fake.faults, faults);
    await expect(provider.create(token, request)).rejects.toMatchObject({ kind, retryAfterMs: null });
  });

  test("after too many calls it waits for the next one, not until all are there again", async () => {
    const now = (): number => 1_800_000_000_000;
    await start({ now, faults: { rateLimited: 1 } });
    const clock = { now, monotonic: now };
    const inTime = new HetznerMachines({ url: fake.url, image: "debian-12", installationId: "ins_own", clock });
    await expect(inTime.create(token, request)).rejects.toMatchObject({ kind: "rate_limited", retryAfterMs: 1000 });
  });

  test("as many servers as the project may have: a quota, not a shortage", async () => {
    await start({ serverLimit: 1 });
    await provider.create(token, request);
    await expect(provider.create(token, { ...request, name: "two" })).rejects.toMatchObject({
      kind: "quota",
      providerWords: "server limit reached (resource_limit_exceeded)",
    });
  });

  test("offers what is sold today, with exact prices, and says where there is no stock", async () => {
    await start({ faults: { soldOut: ["cx22@nbg1"] }, maxPerPage: 2 });
    const plans = await provider.plans(token);
    expect(plans.map(({ type }) => type)).toEqual(["cx22", "cx32", "cpx11", "cax11", "ccx13"]);
    const [cx22] = plans;
    expect(cx22).toMatchObject({ cores: 2, memoryMb: 4096, diskGb: 40, gpu: null });
    expect(cx22?.locations.map(({ name, available }) => [name, available])).toEqual([
      ["fsn1", true],
      ["nbg1", false],
      ["hel1", true],
    ]);
    expect(cx22?.locations[0]).toMatchObject({
      monthlyPrice: { amount: "3.79", currency: "EUR" },
      hourlyPrice: { amount: "0.006", currency: "EUR" },
    });
  });

  test.each(["/server_types", "/pricing"])(
    "a call that the API has removed says so, and is not retried: %s",
    async (path) => {
      await start({ faults: { removed: [path] } });
      await expect(provider.plans(token)).rejects.toMatchObject({
        kind: "outdated",
        providerWords: "the API endpoint functionality was removed (deprecated_api_endpoint)",
      });
    },
  );

  test("a removed call is no sign that a machine is gone", async () => {
    await start();
    const { id } = await provider.create(token, request);
    fake.faults.removed = [`/servers/${id}`];
    await expect(provider.get(token, id)).rejects.toMatchObject({ kind: "outdated" });
    await expect(provider.delete(token, id)).rejects.toMatchObject({ kind: "outdated" });
    expect(project.servers).toHaveLength(1);
  });

  test("its prices are in the currency that it names, and in euros where it names none", async () => {
    const currencies = async (): Promise<readonly (string | undefined)[]> => {
      const places = (await provider.plans(token)).flatMap(({ locations }) => locations);
      const prices = places.flatMap(({ monthlyPrice, hourlyPrice }) => [monthlyPrice, hourlyPrice]);
      return [...new Set(prices.map((price) => price?.currency))];
    };
    await start({ currency: "USD" });
    expect(await currencies()).toEqual(["USD"]);
    fake.faults.noPricing = true;
    expect(await currencies()).toEqual(["EUR"]);
  });

  test.each(["stays", "vanishes"] as const)(
    "a machine that fails after it was accepted, and %s, says why",
    async (server) => {
      await start({ faults: { failLater: { times: 1, server } } });
      const { id } = await provider.create(token, request);
      await expect
        .poll(() => provider.get(token, id))
        .toMatchObject({
          state: server === "stays" ? "failed" : "gone",
          failure: "no host with enough free resources was found (resource_unavailable)",
        });
    },
  );

  test("a machine that is going is not taken for one that runs", async () => {
    await start({ faults: { readsUntilGone: 2 } });
    const { id } = await provider.create(token, request);
    await provider.delete(token, id);
    expect(await provider.get(token, id)).toMatchObject({ state: "stopping" });
    await expect.poll(() => provider.get(token, id)).toBeNull();
  });

  test("a list that is late misses the machine at first; its id finds it, and its name is taken", async () => {
    await start({ faults: { listsUntilSeen: 1 } });
    const { id } = await provider.create(token, request);
    expect(await provider.findByLabel(token, "nod_1")).toEqual([]);
    expect(await provider.get(token, id)).toMatchObject({ id, label: "nod_1" });
    await expect(provider.create(token, request)).rejects.toMatchObject({ kind: "already_exists" });
    expect(await provider.findByLabel(token, "nod_1")).toMatchObject([{ id }]);
  });
});
