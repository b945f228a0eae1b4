import type { Hello } from "@fairlead/protocol/daemon-link";
import type { DesiredState, WorkloadReport } from "@fairlead/protocol/workload";
import { afterEach, describe, expect, it } from "vitest";
import { STORES } from "../testing.fixture.ts";
import { agentReport, PlacedAgents } from "./agents-on-node.fixture.ts";
import { INSTALLATION, type NodeFixture, nodeFixture, OWNER, PROJECT, reportFor } from "./node.fixture.ts";
import type { NodeCalls } from "./node-drain-service.ts";

const HOUR_MS = 3_600_000;
const OLD = 1;
const NEW = 2;

const HELLO: Hello = {
  protocolVersions: [OLD, NEW],
  daemonVersion: "1.3.0",
  bootId: "boot",
  host: {
    operatingSystem: "Debian",
    kernel: "6",
    architecture: "x64",
    hostName: "box",
    cpus: 2,
    memoryMb: 1,
    diskFreeMb: 1,
    dockerVersion: "20",
  },
};

/** Calls that are over once the test says so. */
class RunningCalls implements NodeCalls {
  readonly #over = Promise.withResolvers<void>();
  readonly end = this.#over.resolve;

  drain(): Promise<void> {
    return this.#over.promise;
  }

  hold(): void {
    // Whatever is let through.
  }
}

describe.each(STORES)("agents on a node, on $name", ({ open }) => {
  let fixture: NodeFixture;
  let agents: PlacedAgents;
  let calls: RunningCalls;
  let nodeId: string;

  /** A node whose daemon has agreed on this version. */
  const start = async (
    daemonProtocol: number,
    engine: { preset: "fairlead-demo" } | null = { preset: "fairlead-demo" },
  ) => {
    agents = new PlacedAgents();
    calls = new RunningCalls();
    fixture = await nodeFixture(open, { agents, calls });
    nodeId = (await fixture.createEnrolled("Box", engine)).node.id;
    await fixture.reports.hello(nodeId, HELLO, daemonProtocol);
  };
  afterEach(async () => {
    fixture.drain.close();
    await fixture.close();
  });

  const place = async (agentIds: readonly string[], connectors: readonly string[] = []) => {
    agents.place(nodeId, agentIds, connectors);
    return fixture.store.db
      .transaction()
      .execute((transaction) => fixture.agentHosts.replanWithin(transaction, nodeId));
  };
  const desired = (daemonProtocol = NEW): Promise<DesiredState> => fixture.reports.desiredState(nodeId, daemonProtocol);
  const namesIn = ({ workloads }: DesiredState): string[] => workloads.map(({ workloadId }) => workloadId);
  const engineId = (): string => `${nodeId}-engine`;

  /** What the daemon says over the link of the desired state that it has, and once its engines are ready by `ready` too. */
  const report = async (
    agentReports: readonly WorkloadReport[],
    engine: Partial<WorkloadReport> = {},
  ): Promise<void> => {
    const state = await desired();
    const ofEngine = state.workloads.some(({ workloadId }) => workloadId === engineId())
      ? [reportFor(state, engine)]
      : [];
    const workloadReports = [...ofEngine, ...agentReports.map((told) => ({ ...told, generation: state.generation }))];
    await fixture.reports.observe(nodeId, { epoch: state.epoch, generation: state.generation, workloadReports });
    if (!ofEngine.every(({ ready }) => ready)) return;
    await fixture.reports.ready(nodeId, { id: nodeId, workloadReports, operatingSystem: "", workerImageDigest: "" });
  };
  const node = async () => {
    const found = await fixture.stores.nodes.find(nodeId);
    if (found === null) throw new Error("the node is gone");
    return found;
  };

  describe("the desired state", () => {
    it("holds them beside the engine, under a generation of their own", async () => {
      await start(NEW);
      const before = await desired();
      expect(await place(["agt_1", "agt_2"])).toEqual({ generation: before.generation + 1, changed: true });
      expect(namesIn(await desired())).toEqual([engineId(), "agt_1", "agt_2"]);
      expect(await place(["agt_1", "agt_2"])).toEqual({ generation: before.generation + 1, changed: false });
      expect(await place([])).toEqual({ generation: before.generation + 2, changed: true });
      expect((await desired()).workloads).toEqual(before.workloads);
    });

    it("is planned for no node that is not there", async () => {
      await start(NEW);
      const planned = fixture.store.db
        .transaction()
        .execute((transaction) => fixture.agentHosts.replanWithin(transaction, "nod_none"));
      expect(await planned).toBeNull();
      expect(await fixture.agentHosts.facts("nod_none")).toBeNull();
    });

    it("keeps them through a change of the engine's config, and of its secrets", async () => {
      await start(NEW);
      await place(["agt_1"]);
      const patch = { node: { engineConfig: { preset: "fairlead-demo", env: { A: "1" } } }, updateMask: null };
      await fixture.nodeChanges.update(OWNER, nodeId, { ...patch, providerKeys: { openai: "sk-1" } } as never);
      await fixture.life.restart(OWNER, nodeId);
      expect(namesIn(await desired())).toEqual([engineId(), "agt_1"]);
    });

    it("names none to a daemon that does not know agents, whose generation stays as it would be without them", async () => {
      await start(OLD);
      const before = await desired(OLD);
      await place(["agt_1"]);
      expect(await desired(OLD)).toEqual({ ...before, generation: before.generation + 1 });
      await fixture.life.drain(OWNER, nodeId, HOUR_MS);
      expect((await desired(OLD)).generation).toBe(before.generation + 1);
    });

    it.each([
      { from: OLD, to: NEW },
      { from: NEW, to: OLD },
    ])("is another generation once the daemon speaks $to and no more $from", async ({ from, to }) => {
      await start(from);
      await place(["agt_1"]);
      const before = await desired(from);
      await fixture.reports.hello(nodeId, HELLO, from);
      expect(await desired(from)).toEqual(before);
      await fixture.reports.hello(nodeId, HELLO, to);
      const after = await desired(to);
      expect(after.generation).toBe(before.generation + 1);
      expect(namesIn(after)).toEqual(to === NEW ? [engineId(), "agt_1"] : [engineId()]);
    });
  });

  it("the node's connectors are those that its agents use", async () => {
    await start(NEW);
    await place(["agt_1"], ["http", "slack"]);
    expect((await fixture.views.one(await node())).connectors).toEqual(["http", "slack"]);
    await place([]);
    expect((await node()).connectors).toEqual([]);
  });

  describe("the node's status", () => {
    it.each(["pending", "pulling", "starting", "stopping", "running"] as const)(
      "is active while its engine is ready and an agent is %s",
      async (state) => {
        await start(NEW);
        await place(["agt_1"]);
        await report([agentReport("agt_1", 0, { ready: false, state })]);
        expect(await node()).toMatchObject({ status: "active", statusMessage: "All workloads are ready." });
      },
    );

    it.each(["failed", "backing-off", "unknown"] as const)(
      "is degraded while an agent is %s, and names it",
      async (state) => {
        await start(NEW);
        await place(["agt_1", "agt_2"]);
        await report([agentReport("agt_1", 0), agentReport("agt_2", 0)]);
        expect(await node()).toMatchObject({ status: "active" });
        await report([agentReport("agt_1", 0), agentReport("agt_2", 0, { ready: false, state, message: "why" })]);
        expect(await node()).toMatchObject({ status: "degraded", statusMessage: `agent agt_2 is ${state}: why` });
        await report([agentReport("agt_1", 0), agentReport("agt_2", 0)]);
        expect(await node()).toMatchObject({ status: "active", statusMessage: "All workloads are ready." });
      },
    );

    it("waits for the engine, however ready its agents are", async () => {
      await start(NEW);
      await place(["agt_1"]);
      await report([agentReport("agt_1", 0)], { ready: false, state: "starting" });
      expect(await node()).toMatchObject({ status: "starting" });
      const { generation } = await desired();
      const workloadReports = [agentReport("agt_1", generation)];
      await fixture.reports.ready(nodeId, { id: nodeId, workloadReports, operatingSystem: "", workerImageDigest: "" });
      expect(await node()).toMatchObject({ status: "starting", statusMessage: "A workload is missing." });
    });

    it("is active without an engine, and by an older daemon that says nothing of agents", async () => {
      await start(NEW, null);
      await place(["agt_1"]);
      await report([agentReport("agt_1", 0, { ready: false, state: "pulling" })]);
      expect(await node()).toMatchObject({ status: "active" });
      await fixture.close();
      await start(OLD);
      await place(["agt_1"]);
      await report([]);
      expect(await node()).toMatchObject({ status: "active" });
    });
  });

  describe("as its room is told of the node", () => {
    it("what the daemon last said, what it is to do, and whether it runs agents", async () => {
      await start(NEW);
      expect(await fixture.agentHosts.facts(nodeId)).toMatchObject({ report: null, runsAgents: true });
      await place(["agt_1"]);
      await report([agentReport("agt_1", 0)]);
      const { generation } = await desired();
      expect(await fixture.agentHosts.facts(nodeId)).toMatchObject({
        nodeId,
        projectId: PROJECT,
        name: "Box",
        status: "active",
        generation,
        report: { generation, reports: [{ workloadType: "WORKLOAD_TYPE_ENGINE" }, { workloadId: "agt_1" }] },
        directSecrets: false,
        sealingKey: { crv: "X25519" },
      });
      await fixture.reports.hello(nodeId, HELLO, OLD);
      expect(await fixture.agentHosts.facts(nodeId)).toMatchObject({ runsAgents: false });
    });

    it("nothing of what was said before the store was restored", async () => {
      await start(NEW);
      await place(["agt_1"]);
      await fixture.stores.reports.setReport({
        nodeId,
        epoch: `before ${INSTALLATION.epoch}`,
        generation: 99,
        reports: [],
        workerImageDigest: "",
        lastVersion: "",
        reportedAt: 1,
      });
      expect(await fixture.agentHosts.facts(nodeId)).toMatchObject({ report: null });
    });

    it("no agent is gone by a ready call that names no generation and comes late", async () => {
      await start(NEW, null);
      await report([]);
      await place(["agt_1"]);
      await place([]);
      await fixture.reports.ready(nodeId, {
        id: nodeId,
        workloadReports: [],
        operatingSystem: "",
        workerImageDigest: "",
      });
      const { generation } = await desired();
      const told = await fixture.agentHosts.facts(nodeId);
      expect(told?.report?.generation).toBeLessThan(generation);
      await report([]);
      expect((await fixture.agentHosts.facts(nodeId))?.report).toEqual({ generation, reports: [] });
    });
  });

  describe("draining the node", () => {
    it("stops them at once, then waits for the last call, and stops the engine last", async () => {
      await start(NEW);
      await place(["agt_1"]);
      await report([agentReport("agt_1", 0)]);
      const before = await desired();
      const told: string[] = [];
      fixture.changes.listen(({ aspect }) => told.push(aspect));
      await fixture.life.drain(OWNER, nodeId, HOUR_MS);
      expect(told).toContain("desired");
      const draining = await desired();
      expect(draining.generation).toBe(before.generation + 1);
      expect(namesIn(draining)).toEqual([engineId()]);

      calls.end();
      await report([agentReport("agt_1", 0, { ready: false, state: "stopping" })]);
      expect((await fixture.views.one(await node())).workloads.map(({ state }) => state)).toEqual([
        "running",
        "stopping",
      ]);
      await fixture.drain.sweep();
      expect(await fixture.statusOf(nodeId)).toBe("draining");
      await report([]);
      await expect.poll(() => fixture.statusOf(nodeId)).toBe("drained");
      expect((await desired()).workloads).toEqual([]);

      await fixture.life.resume(OWNER, nodeId);
      const resumed = await desired();
      expect(namesIn(resumed)).toEqual([engineId(), "agt_1"]);
      expect(resumed.generation).toBeGreaterThan(draining.generation);
    });

    it("is not over while a call runs, though they are gone", async () => {
      await start(NEW);
      await place(["agt_1"]);
      await fixture.life.drain(OWNER, nodeId, HOUR_MS);
      await report([]);
      expect(await fixture.statusOf(nodeId)).toBe("draining");
      calls.end();
      await expect.poll(() => fixture.statusOf(nodeId)).toBe("drained");
    });

    it("waits for those that do not stop no longer than it was told", async () => {
      await start(NEW);
      await place(["agt_1"]);
      await report([agentReport("agt_1", 0)]);
      calls.end();
      await fixture.life.drain(OWNER, nodeId, 20);
      await expect.poll(() => fixture.statusOf(nodeId)).toBe("drained");
      expect((await node()).statusMessage).toContain("out of time");
    });

    it("takes them back when it is called off", async () => {
      await start(NEW);
      await place(["agt_1"]);
      await fixture.life.drain(OWNER, nodeId, HOUR_MS);
      const draining = await desired();
      await fixture.life.resume(OWNER, nodeId);
      const resumed = await desired();
      expect(namesIn(resumed)).toEqual([engineId(), "agt_1"]);
      expect(resumed.generation).toBe(draining.generation + 1);
    });
  });
});
