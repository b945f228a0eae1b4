import type { Hello } from "@fairlead/protocol/daemon-link";
import type { DesiredState, WorkloadReport } from "@fairlead/protocol/workload";
import { afterEach, describe, expect, it } from "vitest";
import { STORES } from "../../../testing.fixture.ts";
import type { NodeCalls } from "../actions/node-drain-service.ts";
import { agentReport, PlacedAgents } from "../desired/agents-on-node.fixture.ts";
import { INSTALLATION, type NodeFixture, nodeFixture, OWNER, PROJECT, reportFor } from "../node.fixture.ts";

const HOUR_MS = 3_600_000;

const HELLO: Hello = {
  protocolVersions: [1],
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

  /** A node whose daemon has said hello. */
  const start = async (engine: { preset: "fairlead-demo" } | null = { preset: "fairlead-demo" }) => {
    agents = new PlacedAgents();
    calls = new RunningCalls();
    fixture = await nodeFixture(open, { agents, calls });
    nodeId = (await fixture.createEnrolled("Box", engine)).node.id;
    await fixture.reports.hello(nodeId, HELLO);
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
  const desired = (): Promise<DesiredState> => fixture.reports.desiredState(nodeId);
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
    it("lists them after the engine, with a new generation for every change", async () => {
      await start();
      const before = await desired();
      expect(await place(["agt_1", "agt_2"])).toEqual({ generation: before.generation + 1, changed: true });
      expect(namesIn(await desired())).toEqual([engineId(), "agt_1", "agt_2"]);
      expect(await place(["agt_1", "agt_2"])).toEqual({ generation: before.generation + 1, changed: false });
      expect(await place([])).toEqual({ generation: before.generation + 2, changed: true });
      expect((await desired()).workloads).toEqual(before.workloads);
    });

    it("is not planned for a node that does not exist", async () => {
      await start();
      const planned = fixture.store.db
        .transaction()
        .execute((transaction) => fixture.agentHosts.replanWithin(transaction, "nod_none"));
      expect(await planned).toBeNull();
      expect(await fixture.agentHosts.facts("nod_none")).toBeNull();
    });

    it("keeps them when the engine's config or secrets change", async () => {
      await start();
      await place(["agt_1"]);
      const patch = { node: { engineConfig: { preset: "fairlead-demo", env: { A: "1" } } }, updateMask: null };
      await fixture.nodeChanges.update(OWNER, nodeId, { ...patch, providerKeys: { openai: "sk-1" } } as never);
      await fixture.life.restart(OWNER, nodeId);
      expect(namesIn(await desired())).toEqual([engineId(), "agt_1"]);
    });
  });

  it("the node's connectors are those that its agents use", async () => {
    await start();
    await place(["agt_1"], ["http", "slack"]);
    expect((await fixture.views.one(await node())).connectors).toEqual(["http", "slack"]);
    await place([]);
    expect((await node()).connectors).toEqual([]);
  });

  describe("the node's status", () => {
    it.each(["pending", "pulling", "starting", "stopping", "running"] as const)(
      "is active while its engine is ready and an agent is %s",
      async (state) => {
        await start();
        await place(["agt_1"]);
        await report([agentReport("agt_1", 0, { ready: false, state })]);
        expect(await node()).toMatchObject({ status: "active", statusMessage: "All workloads are ready." });
      },
    );

    it.each([
      ["failed", "unable to run"],
      ["backing-off", "waiting to restart"],
      ["unknown", "in an unknown state"],
    ] as const)("is degraded while an agent is %s, and names it", async (state, words) => {
      await start();
      await place(["agt_1", "agt_2"]);
      await report([agentReport("agt_1", 0), agentReport("agt_2", 0)]);
      expect(await node()).toMatchObject({ status: "active" });
      await report([agentReport("agt_1", 0), agentReport("agt_2", 0, { ready: false, state, message: "why" })]);
      expect(await node()).toMatchObject({ status: "degraded", statusMessage: `agent agt_2 is ${words}: why` });
      await report([agentReport("agt_1", 0), agentReport("agt_2", 0)]);
      expect(await node()).toMatchObject({ status: "active", statusMessage: "All workloads are ready." });
    });

    it("depends on the engine, however ready its agents are", async () => {
      await start();
      await place(["agt_1"]);
      await report([agentReport("agt_1", 0)], { ready: false, state: "starting" });
      expect(await node()).toMatchObject({ status: "starting" });
      const { generation } = await desired();
      const workloadReports = [agentReport("agt_1", generation)];
      await fixture.reports.ready(nodeId, { id: nodeId, workloadReports, operatingSystem: "", workerImageDigest: "" });
      expect(await node()).toMatchObject({ status: "starting", statusMessage: "A workload is missing." });
    });

    it("is active without an engine", async () => {
      await start(null);
      await place(["agt_1"]);
      await report([agentReport("agt_1", 0, { ready: false, state: "pulling" })]);
      expect(await node()).toMatchObject({ status: "active" });
    });
  });

  describe("the facts about the node", () => {
    it("contain the last report and the desired generation", async () => {
      await start();
      expect(await fixture.agentHosts.facts(nodeId)).toMatchObject({ report: null });
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
    });

    it("contain no report from before the store was restored", async () => {
      await start();
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

    it("do not count an agent as gone because of a late ready call without a generation", async () => {
      await start(null);
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
    it("stops the agents immediately, then waits for the last call, and stops the engine last", async () => {
      await start();
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

    it("does not finish while a call is running, even when the agents are gone", async () => {
      await start();
      await place(["agt_1"]);
      await fixture.life.drain(OWNER, nodeId, HOUR_MS);
      await report([]);
      expect(await fixture.statusOf(nodeId)).toBe("draining");
      calls.end();
      await expect.poll(() => fixture.statusOf(nodeId)).toBe("drained");
    });

    it("waits for agents that do not stop only until its time limit", async () => {
      await start();
      await place(["agt_1"]);
      await report([agentReport("agt_1", 0)]);
      calls.end();
      await fixture.life.drain(OWNER, nodeId, 20);
      await expect.poll(() => fixture.statusOf(nodeId)).toBe("drained");
      expect((await node()).statusMessage).toContain("time limit");
    });

    it("puts the agents back in the desired state when it is canceled", async () => {
      await start();
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
