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

describe("the Hetzner adapter", () => {
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

  test("distinguishes bad, read-only and valid tokens without creating or deleting anything", async () => {
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

  test("does not find the machine with a token of another project", async () => {
    await start();
    const { id } = await provider.create(token, request);
    const foreign = fake.addToken(fake.addProject("other"));
    expect(await provider.get(foreign, id)).toBeNull();
    expect(await provider.findByLabel(foreign, null)).toEqual([]);
    await provider.delete(foreign, id);
    expect(project.servers).toHaveLength(1);
  });

  test.each([
    ["missing stock, whatever the list says,", { noCapacity: ["cx22@nbg1"] }, "no_capacity"],
    ["an unavailable service", { unavailable: 1 }, "unavailable"],
    ["a lost response", { lostAnswers: 1 }, "unavailable"],
  ])("reports %s with its own kind of error", async (_, faults, kind) => {
    await start();
    Object.assign(fake.faults, faults);
    await expect(provider.create(token, request)).rejects.toMatchObject({ kind, retryAfterMs: null });
  });

  test("waits only for the next request after rate limiting, not until the full limit is available again", async () => {
    const now = (): number => 1_800_000_000_000;
    await start({ now, faults: { rateLimited: 1 } });
    const clock = { now, monotonic: now };
    const inTime = new HetznerMachines({ url: fake.url, image: "debian-12", installationId: "ins_own", clock });
    await expect(inTime.create(token, request)).rejects.toMatchObject({ kind: "rate_limited", retryAfterMs: 1000 });
  });

  test("reports a reached server limit as a quota, not as a shortage", async () => {
    await start({ serverLimit: 1 });
    await provider.create(token, request);
    await expect(provider.create(token, { ...request, name: "two" })).rejects.toMatchObject({
      kind: "quota",
      providerWords: "server limit reached (resource_limit_exceeded)",
    });
  });

  test("offers what is currently sold, with exact prices, and reports where there is no stock", async () => {
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
    "reports a removed API endpoint as such and does not retry it: %s",
    async (path) => {
      await start({ faults: { removed: [path] } });
      await expect(provider.plans(token)).rejects.toMatchObject({
        kind: "outdated",
        providerWords: "the API endpoint functionality was removed (deprecated_api_endpoint)",
      });
    },
  );

  test("does not take a removed endpoint as a sign that a machine is gone", async () => {
    await start();
    const { id } = await provider.create(token, request);
    fake.faults.removed = [`/servers/${id}`];
    await expect(provider.get(token, id)).rejects.toMatchObject({ kind: "outdated" });
    await expect(provider.delete(token, id)).rejects.toMatchObject({ kind: "outdated" });
    expect(project.servers).toHaveLength(1);
  });

  test("reports prices in the currency that the API names, and in euros if it names none", async () => {
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
    "reports why a machine failed after it was accepted when it %s",
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

  test("does not report a machine that is being deleted as running", async () => {
    await start({ faults: { readsUntilGone: 2 } });
    const { id } = await provider.create(token, request);
    await provider.delete(token, id);
    expect(await provider.get(token, id)).toMatchObject({ state: "stopping" });
    await expect.poll(() => provider.get(token, id)).toBeNull();
  });

  test("finds a new machine by ID while a late list omits it, and its name is taken", async () => {
    await start({ faults: { listsUntilSeen: 1 } });
    const { id } = await provider.create(token, request);
    expect(await provider.findByLabel(token, "nod_1")).toEqual([]);
    expect(await provider.get(token, id)).toMatchObject({ id, label: "nod_1" });
    await expect(provider.create(token, request)).rejects.toMatchObject({ kind: "already_exists" });
    expect(await provider.findByLabel(token, "nod_1")).toMatchObject([{ id }]);
  });
});
