import { afterEach, describe, expect, it } from "vitest";
import { STORES } from "../../../testing.fixture.ts";
import { type NodeFixture, nodeFixture, reportFor } from "../node.fixture.ts";
import { RETURN_MS } from "./fleet-rules.ts";

describe.each(STORES)("on $name", ({ open }) => {
  let fixture: NodeFixture;
  afterEach(() => fixture.close());

  const GRACE_MS = 30_000;
  const TICK_MS = 2000;

  async function sayReady(id: string): Promise<void> {
    const desired = await fixture.reports.desiredState(id);
    const workloadReports = [reportFor(desired)];
    await fixture.reports.ready(id, { id, workloadReports, operatingSystem: "", workerImageDigest: "" });
  }

  async function activeNode(name: string): Promise<string> {
    const { node } = await fixture.createEnrolled(name);
    await sayReady(node.id);
    return node.id;
  }

  async function statuses(ids: readonly string[]): Promise<(string | undefined)[]> {
    return Promise.all(ids.map((id) => fixture.statusOf(id)));
  }

  /** Time as the sweeper lives it. */
  async function pass(milliseconds: number): Promise<void> {
    for (let gone = 0; gone < milliseconds; gone += TICK_MS) {
      fixture.clock.advance(TICK_MS);
      await fixture.liveness.sweep();
    }
  }

  describe("liveness", () => {
    it("marks a node unreachable after three missed heartbeats, not before, and records it once", async () => {
      fixture = await nodeFixture(open);
      const id = await activeNode("Box");
      fixture.liveness.heard(id);
      await pass(GRACE_MS);
      expect(await fixture.statusOf(id)).toBe("active");
      expect(fixture.liveness.figures.overdue).toBe(1);
      await pass(GRACE_MS);
      expect(await fixture.statusOf(id)).toBe("unreachable");
      expect(fixture.liveness.figures.overdue).toBe(0);
      const events = await fixture.stores.events.list(id, { limit: 100, after: null });
      expect(events.filter(({ kind }) => kind === "went_quiet")).toHaveLength(1);
    });

    it("requests one report from a daemon that is heard again, and that report makes the node active", async () => {
      fixture = await nodeFixture(open);
      const id = await activeNode("Box");
      expect(fixture.liveness.beat(id)).toEqual({ heartbeatSeconds: 10 });
      await pass(GRACE_MS + TICK_MS);
      expect(fixture.liveness.beat(id)).toEqual({ heartbeatSeconds: 10, report: true });
      expect(fixture.liveness.beat(id)).toEqual({ heartbeatSeconds: 10 });
      expect(await fixture.statusOf(id)).toBe("unreachable");
      await sayReady(id);
      expect(await fixture.statusOf(id)).toBe("active");
    });

    it("marks a node unreachable immediately when its daemon says goodbye, and requests a report from the next one", async () => {
      fixture = await nodeFixture(open);
      const id = await activeNode("Box");
      fixture.liveness.beat(id);
      await fixture.liveness.left(id);
      expect(await fixture.stores.nodes.find(id)).toMatchObject({
        status: "unreachable",
        statusMessage: expect.stringMatching(/^The daemon was stopped\..*systemctl start fairlead-daemon/),
      });
      await pass(GRACE_MS * 3);
      const events = await fixture.stores.events.list(id, { limit: 100, after: null });
      expect(events.filter(({ status }) => status === "unreachable").map(({ kind }) => kind)).toEqual([
        "daemon_stopped",
      ]);
      expect(fixture.liveness.beat(id)).toMatchObject({ report: true });
      await sayReady(id);
      expect(await fixture.statusOf(id)).toBe("active");
    });

    it("gives every node time to reconnect after a server start, heard or not", async () => {
      fixture = await nodeFixture(open);
      const id = await activeNode("Box");
      await pass(RETURN_MS);
      expect(await fixture.statusOf(id)).toBe("active");
      await pass(TICK_MS);
      expect(await fixture.statusOf(id)).toBe("unreachable");
    });

    it("changes nothing while most of the fleet is silent at once, and shows this in its metrics", async () => {
      fixture = await nodeFixture(open);
      const ids = [await activeNode("A"), await activeNode("B"), await activeNode("C"), await activeNode("D")];
      for (const id of ids) fixture.liveness.heard(id);
      await pass(2 * GRACE_MS);
      expect(await statuses(ids)).toEqual(["active", "active", "active", "active"]);
      expect(fixture.liveness.figures.braked).toBe(true);
      for (const id of ids) fixture.liveness.heard(id);
      await pass(TICK_MS);
      expect(fixture.liveness.figures.braked).toBe(false);
    });

    it("stores when nodes were last heard, by the server's clock, in one batch of only those nodes", async () => {
      fixture = await nodeFixture(open);
      const [quiet, ...heard] = [await activeNode("A"), await activeNode("B"), await activeNode("C")];
      const before = (await fixture.stores.nodes.find(quiet ?? ""))?.lastSeenAt;
      fixture.clock.advance(5000);
      for (const id of heard) fixture.liveness.heard(id);
      await fixture.liveness.flush();
      const seen = await Promise.all(heard.map((id) => fixture.stores.nodes.find(id)));
      expect(seen.map((node) => node?.lastSeenAt)).toEqual([fixture.clock.now(), fixture.clock.now()]);
      expect((await fixture.stores.nodes.find(quiet ?? ""))?.lastSeenAt).toBe(before);
      await fixture.liveness.flush();
      expect([fixture.liveness.figures.batches.count, fixture.liveness.figures.batches.sum]).toEqual([1, 2]);
    });

    it("requests fewer heartbeats per node in a larger fleet, so that the total stays below a limit", async () => {
      fixture = await nodeFixture(open, { liveness: { heartbeatsPerSecond: 1, minHeartbeatSeconds: 2 } });
      expect(fixture.liveness.heartbeatSeconds()).toBe(2);
      for (let n = 0; n < 30; n++) fixture.liveness.heard(`nod_${n}`);
      expect(fixture.liveness.heartbeatSeconds()).toBe(30);
      for (let n = 0; n < 30; n++) fixture.liveness.forget(`nod_${n}`);
      expect(fixture.liveness.heartbeatSeconds()).toBe(2);
    });

    it("knows the size of the fleet before its daemons have reconnected after a start", async () => {
      fixture = await nodeFixture(open, { liveness: { heartbeatsPerSecond: 1, minHeartbeatSeconds: 2 } });
      for (const name of ["A", "B", "C", "D"]) await activeNode(name);
      await fixture.liveness.sweep();
      expect(fixture.liveness.heartbeatSeconds()).toBe(4);
    });
  });
});
