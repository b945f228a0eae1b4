import type { Condition } from "@fairlead/protocol/conditions";
import { observationSchema } from "@fairlead/protocol/daemon-link";
import { rfc3339 } from "@fairlead/protocol/values/clock";
import type { DesiredState } from "@fairlead/protocol/workload";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { STORES } from "../../../testing.fixture.ts";
import { type NodeFixture, nodeFixture, PROJECT, reportFor } from "../node.fixture.ts";

describe.each(STORES)("on $name", ({ open }) => {
  let fixture: NodeFixture;
  beforeEach(async () => {
    fixture = await nodeFixture(open);
  });
  afterEach(() => fixture.close());

  async function startingNode(): Promise<{ nodeId: string; desired: DesiredState }> {
    const { node } = await fixture.createEnrolled("Box");
    return { nodeId: node.id, desired: await fixture.reports.desiredState(node.id) };
  }

  function ready(nodeId: string, desired: DesiredState, changes: Parameters<typeof reportFor>[1] = {}): Promise<void> {
    const report = reportFor(desired, changes);
    return fixture.reports.ready(nodeId, {
      id: nodeId,
      workloadReports: [report],
      operatingSystem: "Debian GNU/Linux 13",
      workerImageDigest: report.imageDigest,
    });
  }

  function observe(
    nodeId: string,
    desired: DesiredState,
    changes: Parameters<typeof reportFor>[1] = {},
  ): Promise<void> {
    return fixture.reports.observe(nodeId, {
      epoch: desired.epoch,
      generation: desired.generation,
      workloadReports: [reportFor(desired, changes)],
    });
  }

  describe("a ready call", () => {
    it("makes a starting node active, and its engine available with its models", async () => {
      const { nodeId, desired } = await startingNode();
      await ready(nodeId, desired);
      expect(await fixture.stores.nodes.find(nodeId)).toMatchObject({
        status: "active",
        operatingSystem: "Debian GNU/Linux 13",
      });
      expect(await fixture.engines.list(PROJECT)).toMatchObject([
        { identifier: "box", absence: null, models: ["tinychat-6m"] },
      ]);
    });

    it("can be repeated without a second event", async () => {
      const { nodeId, desired } = await startingNode();
      await ready(nodeId, desired);
      const events = await fixture.stores.events.list(nodeId, { after: null, limit: 50 });
      await ready(nodeId, desired);
      expect(await fixture.stores.events.list(nodeId, { after: null, limit: 50 })).toEqual(events);
    });

    it("for an older generation is accepted and ignored", async () => {
      const { nodeId, desired } = await startingNode();
      await fixture.stores.reports.setDesired(nodeId, desired.workloads);
      await ready(nodeId, desired);
      expect(await fixture.statusOf(nodeId)).toBe("starting");
      expect(await fixture.stores.reports.report(nodeId)).toBeNull();
    });

    it("for an older generation counts if it is observed under the current one, as after a rolled-back update", async () => {
      const { nodeId, desired } = await startingNode();
      await ready(nodeId, desired);
      await fixture.stores.reports.setDesired(nodeId, desired.workloads);
      const later = await fixture.reports.desiredState(nodeId);
      await observe(nodeId, later, { ready: false, state: "starting" });
      const back = {
        generation: desired.generation,
        message: "the update to generation 2 was rolled back: exit code 3",
      };
      await ready(nodeId, desired, back);
      expect(await fixture.statusOf(nodeId)).toBe("degraded");
      await observe(nodeId, later, back);
      for (let repeat = 0; repeat < 2; repeat++) await ready(nodeId, desired, back);
      expect(await fixture.stores.nodes.find(nodeId)).toMatchObject({
        status: "active",
        statusMessage: `engine: ${back.message}`,
      });
      expect((await fixture.stores.reports.report(nodeId))?.generation).toBe(later.generation);
    });

    it("without a workload of the generation does not make the node active", async () => {
      const { nodeId, desired } = await startingNode();
      await fixture.reports.ready(nodeId, {
        id: nodeId,
        workloadReports: [],
        operatingSystem: "",
        workerImageDigest: "",
      });
      expect(await fixture.statusOf(nodeId)).toBe("starting");
      await ready(nodeId, desired, { ready: false, state: "starting" });
      expect(await fixture.statusOf(nodeId)).toBe("starting");
    });

    it("makes a node without an engine active without any workload report", async () => {
      const { node } = await fixture.createEnrolled("Bare", null);
      await fixture.reports.ready(node.id, {
        id: node.id,
        workloadReports: [],
        operatingSystem: "",
        workerImageDigest: "",
      });
      expect(await fixture.statusOf(node.id)).toBe("active");
    });

    it("makes an unreachable node active again", async () => {
      const { nodeId, desired } = await startingNode();
      await fixture.status.apply(nodeId, "went_quiet", "test");
      await ready(nodeId, desired);
      expect(await fixture.statusOf(nodeId)).toBe("active");
    });
  });

  describe("an observation over the link", () => {
    it("never makes a node active", async () => {
      const { nodeId, desired } = await startingNode();
      await observe(nodeId, desired);
      expect(await fixture.statusOf(nodeId)).toBe("starting");
    });

    it("degrades an active node whose workload is not ready, with the reason, and takes the engine out of service", async () => {
      const { nodeId, desired } = await startingNode();
      await ready(nodeId, desired);
      await observe(nodeId, desired, { ready: false, state: "backing-off", message: "exit code 137" });
      const node = await fixture.stores.nodes.find(nodeId);
      expect(node?.status).toBe("degraded");
      expect(node?.statusMessage).toContain("engine is waiting to restart: exit code 137");
      expect(await fixture.engines.list(PROJECT)).toMatchObject([
        {
          identifier: "box",
          absence: expect.stringMatching(
            /^The engine of node `box` has exited and is being restarted \(since .*\): exit code 137$/,
          ),
        },
      ]);
    });

    it("of a node that is not ready updates what it is waiting for", async () => {
      const { nodeId, desired } = await startingNode();
      const message = async () => (await fixture.stores.nodes.find(nodeId))?.statusMessage;
      for (const status of ["starting", "degraded"]) {
        await observe(nodeId, desired, { ready: false, state: "pulling", message: "pulling: 10 %" });
        await observe(nodeId, desired, { ready: false, state: "pulling", message: "pulling: 90 %" });
        expect(await fixture.statusOf(nodeId)).toBe(status);
        expect(await message()).toBe("engine is pulling its image: pulling: 90 %");
        await ready(nodeId, desired);
      }
    });

    it("of an active node that serves an older generation says why, until the node is up to date", async () => {
      const { nodeId, desired } = await startingNode();
      await ready(nodeId, desired);
      const message = async () => (await fixture.stores.nodes.find(nodeId))?.statusMessage;
      const later = { ...desired, generation: desired.generation + 1 };
      const rolledBack = "the update to generation 2 was rolled back: exit code 1";
      await observe(nodeId, later, { generation: desired.generation, message: rolledBack });
      expect(await fixture.statusOf(nodeId)).toBe("active");
      expect(await message()).toContain(rolledBack);
      await observe(nodeId, later);
      expect(await message()).toBe("Engine is ready.");
    });

    it("of a healthy node keeps a note about something else", async () => {
      const { nodeId, desired } = await startingNode();
      await ready(nodeId, desired);
      await fixture.status.note(nodeId, { kind: "identity_shared", message: "Two daemons use this node's identity." });
      await observe(nodeId, desired);
      const node = await fixture.stores.nodes.find(nodeId);
      expect(node?.statusMessage).toBe("Two daemons use this node's identity.");
    });

    it("of another store epoch or an older generation changes nothing", async () => {
      const { nodeId, desired } = await startingNode();
      await ready(nodeId, desired);
      await observe(nodeId, { ...desired, epoch: "epo_restored" }, { ready: false });
      await observe(nodeId, { ...desired, generation: desired.generation - 1 }, { ready: false });
      expect(await fixture.statusOf(nodeId)).toBe("active");
    });

    it("of a node that was deleted in the meantime is ignored", async () => {
      const { desired } = await startingNode();
      await expect(observe("nod_gone", desired)).resolves.toBeUndefined();
    });
  });

  describe("the machine's conditions", () => {
    const disk: Condition = {
      type: "disk",
      status: "problem",
      reason: "disk_pressure",
      message: 'full of "\u{1f4a5}" <b>',
      since: "2026-01-01T00:00:00.000Z",
    };
    const observed = (desired: DesiredState, conditions?: Condition[]) => ({
      epoch: desired.epoch,
      generation: desired.generation,
      workloadReports: [],
      ...(conditions && { conditions }),
    });
    const shown = async (nodeId: string) => (await fixture.stores.nodes.find(nodeId))?.conditions;

    it("are stored as last reported, and kept when a daemon reports none", async () => {
      const { nodeId, desired } = await startingNode();
      expect(await shown(nodeId)).toEqual([]);
      await fixture.reports.observe(nodeId, observed(desired, [disk]));
      await fixture.reports.observe(nodeId, observed(desired));
      expect(await shown(nodeId)).toEqual([disk]);
      await fixture.reports.observe(nodeId, observed(desired, []));
      expect(await shown(nodeId)).toEqual([]);
    });

    it("are accepted for any generation of the daemon, but not from another store epoch", async () => {
      const { nodeId, desired } = await startingNode();
      await fixture.reports.observe(nodeId, observed({ ...desired, generation: 0 }, [disk]));
      await fixture.reports.observe(nodeId, observed({ ...desired, epoch: "epo_other" }, []));
      expect(await shown(nodeId)).toEqual([disk]);
    });

    it("of a type that only a newer daemon knows are kept, with an unknown status", () => {
      const newer = { ...disk, type: "fans", status: "noisy", more: 1 };
      const { data } = observationSchema.safeParse({
        epoch: "e",
        generation: 1,
        workloadReports: [],
        conditions: [newer],
      });
      expect(data?.conditions).toEqual([{ ...disk, type: "fans", status: "unknown" }]);
    });
  });

  describe("a daemon's events", () => {
    it("are stored once however often they are sent, and separately from equal IDs of other nodes", async () => {
      const { nodeId } = await startingNode();
      const other = await fixture.create("Other");
      const event = { id: "1", at: "2026-01-01T00:00:00.000Z", kind: "pulled", workloadId: null, message: "pulled" };
      await fixture.reports.events(nodeId, [event]);
      await fixture.reports.events(nodeId, [event]);
      await fixture.reports.events(other.id, [event]);
      const pulled = async (id: string): Promise<number> =>
        (await fixture.stores.events.list(id, { after: null, limit: 50 })).filter(({ kind }) => kind === "pulled")
          .length;
      expect([await pulled(nodeId), await pulled(other.id)]).toEqual([1, 1]);
    });

    it("keep their time if they waited for the link; otherwise, or if it is impossible, they get the server's", async () => {
      const { nodeId } = await startingNode();
      const now = fixture.clock.now();
      const told = [now - 8 * 3_600_000, now - 1000, now + 3_600_000, 0, Number.NaN];
      const events = told.map((at, index) => ({
        id: `${index}`,
        at: Number.isNaN(at) ? "last night" : rfc3339(at),
        kind: "late",
        workloadId: null,
        message: "m",
      }));
      await fixture.reports.events(nodeId, events);
      const kept = await fixture.stores.events.list(nodeId, { after: null, limit: 50, kinds: ["late"] });
      expect(kept.map(({ at }) => at).reverse()).toEqual([now - 8 * 3_600_000, now, now, now, now]);
    });
  });
});
