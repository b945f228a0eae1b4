import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { STORES } from "../../../testing.fixture.ts";
import { OWNER, PROJECT } from "../../nodes/node.fixture.ts";
import { GOOD_TOKEN, refusal } from "../memory-machines.fixture.ts";
import { type ProvisioningFixture, provisioningFixture } from "./provisioning.fixture.ts";

const OTHER_TOKEN = "another-provider-token";

describe.each(STORES)("renting a machine on $name", ({ open }) => {
  let rooms: ProvisioningFixture;
  beforeEach(async () => {
    rooms = await provisioningFixture(open);
  });
  afterEach(() => rooms.fixture.close());

  const told = async (nodeId: string): Promise<string[]> => {
    const events = await rooms.fixture.stores.events.list(nodeId, { limit: 100, after: null });
    return events.toReversed().map(({ kind, message }) => `${kind}: ${message}`);
  };
  const order = (changes: object): Promise<unknown> =>
    rooms.fixture.nodes.create(OWNER, {
      projectId: PROJECT,
      planId: "memory:m1",
      name: "Rented",
      providerToken: GOOD_TOKEN,
      directSecrets: false,
      engineConfig: null,
      ...changes,
    });
  const nodesLeft = async (): Promise<number> => rooms.fixture.stores.nodes.count(PROJECT);

  describe("an order", () => {
    test.each([
      ["an unknown plan", { planId: "small" }, { code: "invalid_request", param: "planId" }],
      ["an unknown provider", { planId: "moon:m1" }, { code: "invalid_request", param: "planId" }],
      ["an unknown type", { planId: "memory:m9" }, { code: "invalid_request", param: "planId" }],
      ["an unknown location", { location: "moon" }, { code: "invalid_request", param: "location" }],
      ["no token", { providerToken: undefined }, { code: "invalid_request", param: "providerToken" }],
      ["a bad token", { providerToken: "wrong" }, { code: "provider_token_invalid", param: "providerToken" }],
      [
        "a token for a machine that is not rented",
        { planId: "byo" },
        { code: "invalid_request", param: "providerToken" },
      ],
    ])("with %s is rejected, and no node is created", async (_name, changes, refused) => {
      await expect(order(changes)).rejects.toMatchObject(refused);
      expect(await nodesLeft()).toBe(0);
      expect(rooms.provider.calls).not.toContain("create");
    });

    test("with a read-only token is rejected as such", async () => {
      rooms.provider.tokens.add("read-only");
      await expect(order({ providerToken: "read-only" })).rejects.toMatchObject({ code: "provider_token_read_only" });
    });

    test.each([
      ["rate_limited", "rate_limit_exceeded", 7],
      ["unavailable", "unavailable", 7],
      ["wrong_project", "provider_token_wrong_project", undefined],
    ] as const)("to a provider that returns %s is refused with %s", async (kind, code, retryAfterSeconds) => {
      const words = Object.assign(refusal(kind, "its own words"), { retryAfterMs: 6100 });
      rooms.provider.faults.refusal = words;
      const refused = {
        code,
        retryAfterSeconds,
        source: "provider",
        message: expect.stringContaining("its own words"),
      };
      await expect(order({})).rejects.toMatchObject(refused);
      expect(await nodesLeft()).toBe(0);
    });
  });

  test("records every step from the order to the enrolled daemon, and stores the machine's IP address", async () => {
    const { id } = await rooms.create({ location: "north" });
    await rooms.settle(id);
    expect(await told(id)).toEqual([
      "created: Requesting a m1 from memory.",
      "machine_requested: Requesting a m1 in north from memory.",
      "machine_accepted: memory accepted the order: machine 1 in north is starting.",
      "bootstrap_token_issued: The machine is running at 192.0.2.20 and installing its daemon.",
      "enrolled: Enrolled with daemon 0.1.0; waiting for its workloads.",
    ]);
    expect(await rooms.fixture.stores.nodes.find(id)).toMatchObject({ status: "starting", publicIp: "192.0.2.20" });
    expect(await rooms.machines.find(id)).toMatchObject({ step: "serving", sealedBootstrap: null });
  });

  test("never stores a token in plain text, not even in an event", async () => {
    const { id } = await rooms.create({ location: "north" });
    await rooms.settle(id, { enrol: false });
    const { db } = rooms.fixture.store;
    const tables = await Promise.all(
      (["machine", "node", "node_event", "audit_event", "bootstrap_token"] as const).map((table) =>
        db.selectFrom(table).selectAll().execute(),
      ),
    );
    const kept = JSON.stringify(tables);
    expect(kept).not.toContain(GOOD_TOKEN);
    expect(kept).not.toContain("flb_");
  });

  test("fails with the last status and deletes the machine when no daemon enrolls in time", async () => {
    const { id } = await rooms.create({ location: "north" });
    await rooms.settle(id, { enrol: false });
    expect(rooms.provider.living).toEqual([]);
    expect(await rooms.machines.find(id)).toMatchObject({ step: "failed", machineId: null });
    expect(await rooms.fixture.stores.nodes.find(id)).toMatchObject({
      status: "failed",
      statusMessage:
        "No daemon enrolled within 25 minutes. Last status: The machine is running at 192.0.2.20 and installing its daemon.",
      publicIp: "",
    });
  });

  test.each([
    ["bad_input", "server type is not sold"],
    ["quota", "server limit reached"],
  ] as const)("fails immediately with the provider's message on %s", async (kind, words) => {
    const { id } = await rooms.create({ location: "north,south" });
    rooms.provider.faults.refusal = refusal(kind, words);
    await rooms.settle(id);
    expect(await rooms.fixture.stores.nodes.find(id)).toMatchObject({
      status: "failed",
      statusMessage: `memory rejected the order of a m1: ${words}.`,
    });
  });

  test("fails with the message of the last location when none has capacity", async () => {
    rooms.provider.faults.full = ["north", "south", "west"];
    const { id } = await rooms.create();
    await rooms.settle(id);
    expect(await rooms.fixture.stores.nodes.find(id)).toMatchObject({
      status: "failed",
      statusMessage: "No memory:m1 in west: west is full.",
    });
    expect((await told(id)).filter((event) => event.startsWith("location_refused"))).toHaveLength(2);
  });

  test("waits as long as a rate-limited provider asks before the next call", async () => {
    const { id } = await rooms.create({ location: "north" });
    rooms.provider.faults.refusal = Object.assign(refusal("rate_limited", "too many"), { retryAfterMs: 90_000 });
    expect(await rooms.provisioning.advance(id)).toBe(90_000);
  });

  test("fails immediately when the provider has removed the API, and says what to do", async () => {
    const { id } = await rooms.create({ location: "north" });
    rooms.provider.faults.refusal = refusal("outdated", "HTTP 410");
    await rooms.settle(id);
    expect(await rooms.fixture.stores.nodes.find(id)).toMatchObject({
      status: "failed",
      statusMessage: expect.stringMatching(/HTTP 410\. .*too old for its API; upgrade the control plane/),
    });
    expect(await rooms.machines.find(id)).toMatchObject({ step: "failed" });
  });

  test("fails with the reason when the provider is unavailable until the deadline", async () => {
    const { id } = await rooms.create({ location: "north" });
    rooms.provider.faults.refusal = refusal("unavailable", "HTTP 503");
    for (let step = 0; step < 200; step += 1) {
      rooms.fixture.clock.advance((await rooms.provisioning.advance(id)) ?? 0);
      if ((await rooms.fixture.statusOf(id)) === "failed") break;
    }
    expect(await rooms.fixture.stores.nodes.find(id)).toMatchObject({
      status: "failed",
      statusMessage: expect.stringMatching(/within 25 minutes.*HTTP 503/),
    });
    rooms.provider.faults.refusal = null;
    await rooms.settle(id);
    expect(await rooms.machines.find(id)).toMatchObject({ step: "failed" });
    expect((await told(id)).filter((event) => event.startsWith("provider_trouble"))).toHaveLength(1);
  });

  describe("a token that was revoked in the meantime", () => {
    test("is reported, and provisioning continues with a new one", async () => {
      const { id } = await rooms.create({ location: "north" });
      rooms.provider.tokens.clear();
      expect(await rooms.provisioning.advance(id)).toBeGreaterThan(0);
      expect((await rooms.fixture.stores.nodes.find(id))?.statusMessage).toMatch(/rejected the provider token.*PATCH/);
      rooms.provider.tokens.add(OTHER_TOKEN);
      const update = { node: {}, updateMask: null, providerKeys: {}, providerToken: OTHER_TOKEN };
      await rooms.fixture.nodeChanges.update(OWNER, id, update);
      await rooms.settle(id);
      expect(await rooms.fixture.statusOf(id)).toBe("starting");
      expect(rooms.provider.living).toHaveLength(1);
    });

    test("blocks a deletion until there is a new one", async () => {
      const { id } = await rooms.create({ location: "north" });
      await rooms.settle(id);
      rooms.provider.tokens.clear();
      await rooms.fixture.nodeChanges.delete(OWNER, id);
      await rooms.provisioning.advance(id);
      expect(await rooms.fixture.statusOf(id)).toBe("deleting");
      rooms.provider.tokens.add(OTHER_TOKEN);
      const update = { node: {}, updateMask: null, providerKeys: {}, providerToken: OTHER_TOKEN };
      await rooms.fixture.nodeChanges.update(OWNER, id, update);
      await rooms.settle(id);
      expect(rooms.provider.living).toEqual([]);
      expect(await rooms.fixture.statusOf(id)).toBeUndefined();
    });

    test.each([
      ["a bad one", "wrong", "provider_token_invalid"],
      ["one of another project", "foreign", "provider_token_wrong_project"],
    ])("is not replaced by %s", async (_name, providerToken, code) => {
      const { id } = await rooms.create({ location: "north" });
      await rooms.settle(id);
      const before = await rooms.machines.find(id);
      if (providerToken === "foreign") {
        rooms.provider.tokens.add(providerToken);
        rooms.provider.kept.clear();
      }
      const update = { node: { name: "Other" }, updateMask: null, providerKeys: {}, providerToken };
      await expect(rooms.fixture.nodeChanges.update(OWNER, id, update)).rejects.toMatchObject({ code });
      expect(await rooms.machines.find(id)).toEqual(before);
      expect((await rooms.fixture.stores.nodes.find(id))?.name).toBe("Rented");
    });
  });

  test("rejects a token for a node without a rented machine", async () => {
    const { id } = await rooms.fixture.create("Own");
    const update = { node: {}, updateMask: null, providerKeys: {}, providerToken: GOOD_TOKEN };
    await expect(rooms.fixture.nodeChanges.update(OWNER, id, update)).rejects.toMatchObject({
      code: "invalid_request",
      param: "providerToken",
    });
  });

  test("a deletion revokes the node immediately, is recorded once, and ends once the provider confirms", async () => {
    const { id } = await rooms.create({ location: "north" });
    await rooms.settle(id);
    await rooms.fixture.nodeChanges.delete(OWNER, id);
    await rooms.fixture.nodeChanges.delete(OWNER, id);
    expect(await rooms.fixture.statusOf(id)).toBe("deleting");
    expect(await rooms.fixture.identities.find(id)).toBeNull();
    await rooms.provisioning.advance(id);
    expect(await rooms.fixture.statusOf(id)).toBe("deleting");
    await rooms.settle(id);
    expect(await rooms.fixture.statusOf(id)).toBeUndefined();
    const { db } = rooms.fixture.store;
    const recorded = await db.selectFrom("audit_event").selectAll().where("action", "=", "node.delete").execute();
    expect(recorded).toHaveLength(1);
  });

  test.each(["create", "get"])(
    "a deletion during the provider's %s call is not undone by its response",
    async (call) => {
      rooms.provider.faults.failLater = call === "get" ? 1 : 0;
      const { id } = await rooms.create({ location: "north,south" });
      let deleted = false;
      rooms.provider.meanwhile = async (carriedOut) => {
        if (carriedOut !== call || deleted) return;
        deleted = true;
        await rooms.fixture.nodeChanges.delete(OWNER, id);
      };
      while (!deleted) await rooms.provisioning.advance(id);
      expect(await rooms.machines.find(id)).toMatchObject({ step: "removing", machineId: "1" });
      await rooms.settle(id, { enrol: false });
      expect(await rooms.fixture.statusOf(id)).toBeUndefined();
      expect(rooms.provider.living).toEqual([]);
      expect(rooms.provider.calls.filter((made) => made === "create")).toHaveLength(1);
    },
  );

  test("a node whose machine is no longer accessible is deleted if the caller abandons the machine", async () => {
    const { id } = await rooms.create({ location: "north" });
    await rooms.settle(id);
    rooms.provider.tokens.clear();
    await rooms.fixture.nodeChanges.delete(OWNER, id);
    await rooms.fixture.nodeChanges.delete(OWNER, id, { abandonMachine: true });
    expect(await rooms.fixture.statusOf(id)).toBeUndefined();
    expect(await rooms.provisioning.advance(id)).toBeNull();
    const { db } = rooms.fixture.store;
    const recorded = await db.selectFrom("audit_event").select("detail").where("action", "=", "node.delete").execute();
    expect(recorded.map(({ detail }) => detail)).toEqual(["{}", '{"machineAbandoned":true}']);
  });

  test("the nodes of a deleted project are removed when their machines are", async () => {
    const { id } = await rooms.create({ location: "north" });
    await rooms.settle(id);
    const ending = rooms.fixture.removal.removeAll(PROJECT, new AbortController().signal);
    await expect.poll(() => rooms.fixture.statusOf(id)).toBe("deleting");
    await rooms.settle(id);
    await ending;
    expect(await nodesLeft()).toBe(0);
    expect(rooms.provider.living).toEqual([]);
  });

  describe("a sweep", () => {
    const plant = (label: string): Promise<unknown> =>
      rooms.provider.create(GOOD_TOKEN, {
        label,
        name: `planted-${label}`,
        type: "m1",
        location: "west",
        userData: "",
      });

    test("finds orphaned and missing machines, and deletes the orphaned ones only on request", async () => {
      const { id } = await rooms.create({ location: "north", name: "Kept" });
      const lost = await rooms.create({ location: "north", name: "Lost" });
      await rooms.settle(id);
      await rooms.settle(lost.id);
      const machineId = (await rooms.machines.find(lost.id))?.machineId ?? "";
      rooms.provider.kept.delete(machineId);
      await plant("nod_forgotten");
      const call = { projectId: PROJECT, delete: false };
      const found = await rooms.sweeps.sweep(OWNER, call);
      expect(found).toMatchObject({
        orphans: [{ provider: "memory", machine: { label: "nod_forgotten" }, deleted: false }],
        missing: [{ provider: "memory", nodeId: lost.id, machineId }],
        unseen: [],
      });
      expect(rooms.provider.living).toHaveLength(2);
      expect((await rooms.sweeps.sweep(OWNER, { ...call, delete: true })).orphans).toMatchObject([{ deleted: true }]);
      const states = rooms.provider.living.map(({ machine }) => `${machine.label} ${machine.state}`);
      expect(states.toSorted()).toEqual([`${id} running`, "nod_forgotten stopping"].toSorted());
    });

    test("finds a second machine of a node, and ignores machines that are being ordered", async () => {
      const { id } = await rooms.create({ location: "north" });
      await rooms.provisioning.advance(id);
      expect((await rooms.sweeps.sweep(OWNER, { projectId: PROJECT, delete: true })).orphans).toEqual([]);
      await rooms.settle(id);
      await plant(id);
      const { orphans } = await rooms.sweeps.sweep(OWNER, { projectId: PROJECT, delete: true });
      expect(orphans.map(({ machine }) => machine.location)).toEqual(["west"]);
      expect((await rooms.machines.find(id))?.step).toBe("serving");
    });

    test("deletes the other machines when one cannot be deleted, and says why", async () => {
      await plant("nod_first");
      await plant("nod_second");
      const [locked] = rooms.provider.living;
      rooms.provider.faults.locked = locked?.machine.id ?? "";
      const call = { projectId: PROJECT, delete: true, provider: "memory", providerToken: GOOD_TOKEN };
      expect((await rooms.sweeps.sweep(OWNER, call)).orphans).toMatchObject([
        { machine: { label: "nod_first" }, deleted: false, refusal: "it is locked" },
        { machine: { label: "nod_second" }, deleted: true, refusal: null },
      ]);
    });

    test("uses the caller's token if no node is left, and names the providers that it could not check", async () => {
      await plant("nod_forgotten");
      const call = { projectId: PROJECT, delete: false, provider: "memory" };
      expect(await rooms.sweeps.sweep(OWNER, { ...call, providerToken: GOOD_TOKEN })).toMatchObject({ orphans: [{}] });
      await expect(rooms.sweeps.sweep(OWNER, call)).rejects.toMatchObject({ param: "providerToken" });
      expect(await rooms.sweeps.sweep(OWNER, { ...call, providerToken: "wrong" })).toMatchObject({
        orphans: [],
        unseen: [{ provider: "memory", message: expect.not.stringContaining("wrong") }],
      });
    });

    test("that runs daily records its findings in the audit log and as node events, and deletes nothing", async () => {
      const { id } = await rooms.create({ location: "north" });
      await rooms.settle(id);
      rooms.provider.kept.clear();
      await plant("nod_forgotten");
      await rooms.sweeps.daily();
      expect(await told(id)).toContainEqual(expect.stringMatching(/^machine_missing: memory no longer has machine 1/));
      const { db } = rooms.fixture.store;
      const recorded = await db.selectFrom("audit_event").selectAll().where("action", "=", "machine.orphan").execute();
      expect(recorded).toMatchObject([{ project_id: PROJECT, resource_type: "machine", actor_id: "provisioning" }]);
      expect(rooms.provider.living).toHaveLength(1);
    });
  });
});
