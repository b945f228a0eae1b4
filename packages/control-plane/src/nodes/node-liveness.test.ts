import { afterEach, describe, expect, it } from "vitest";
import { STORES } from "../testing.fixture.ts";
import { type NodeFixture, nodeFixture, reportFor } from "./node.fixture.ts";

describe.each(STORES)("on $name", ({ open }) => {
  let fixture: NodeFixture;
  afterEach(() => fixture.close());

  const GRACE_MS = 30_000;

  async function activeNode(name: string): Promise<string> {
    const { node } = await fixture.createEnrolled(name);
    const desired = await fixture.reports.desiredState(node.id);
    await fixture.reports.ready(node.id, {
      id: node.id,
      workloadReports: [reportFor(desired)],
      operatingSystem: "",
      workerImageDigest: "",
    });
    return node.id;
  }

  async function statuses(ids: readonly string[]): Promise<(string | undefined)[]> {
    return Promise.all(ids.map((id) => fixture.statusOf(id)));
  }

  describe("liveness", () => {
    it("marks a node unreachable after three missed heartbeats, not before", async () => {
      fixture = await nodeFixture(open);
      const id = await activeNode("Box");
      fixture.liveness.heard(id);
      fixture.clock.advance(GRACE_MS);
      await fixture.liveness.sweep();
      expect(await fixture.statusOf(id)).toBe("active");
      fixture.clock.advance(1);
      await fixture.liveness.sweep();
      expect(await fixture.statusOf(id)).toBe("unreachable");
    });

    it("gives every node its grace after a restart of the server, heard or not", async () => {
      fixture = await nodeFixture(open);
      const id = await activeNode("Box");
      fixture.clock.advance(GRACE_MS - 1);
      await fixture.liveness.sweep();
      expect(await fixture.statusOf(id)).toBe("active");
    });

    it("changes nothing while most of the fleet is quiet at once, and goes on when it is heard again", async () => {
      fixture = await nodeFixture(open);
      const ids = [await activeNode("A"), await activeNode("B"), await activeNode("C"), await activeNode("D")];
      fixture.clock.advance(GRACE_MS + 1);
      fixture.liveness.heard(ids[0] ?? "");
      await fixture.liveness.sweep();
      expect(await statuses(ids)).toEqual(["active", "active", "active", "active"]);
      fixture.liveness.heard(ids[1] ?? "");
      await fixture.liveness.sweep();
      expect(await statuses(ids)).toEqual(["active", "active", "unreachable", "unreachable"]);
    });

    it("stores when a node was last heard by the server's clock, in one batch", async () => {
      fixture = await nodeFixture(open);
      const id = await activeNode("Box");
      fixture.clock.advance(5000);
      fixture.liveness.heard(id);
      await fixture.liveness.flush();
      expect((await fixture.stores.nodes.find(id))?.lastSeenAt).toBe(fixture.clock.now());
    });

    it("asks for fewer heartbeats from a larger fleet, so that their sum stays under the stated rate", async () => {
      fixture = await nodeFixture(open, { liveness: { heartbeatsPerSecond: 1, minHeartbeatSeconds: 2 } });
      expect(fixture.liveness.heartbeatSeconds()).toBe(2);
      for (let n = 0; n < 30; n++) fixture.liveness.heard(`nod_${n}`);
      expect(fixture.liveness.heartbeatSeconds()).toBe(30);
    });
  });
});
