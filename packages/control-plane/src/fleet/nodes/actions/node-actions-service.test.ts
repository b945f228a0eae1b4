import type { DesiredState } from "@fairlead/protocol/workload";
import { afterEach, describe, expect, it } from "vitest";
import { STORES } from "../../../testing.fixture.ts";
import { type NodeFixture, nodeFixture, OWNER, reportFor, STRANGER, VIEWER } from "../node.fixture.ts";
import type { NodeCalls } from "./node-drain-service.ts";

const HOUR_MS = 3_600_000;

/** Calls that run until the test ends them, and which nodes take no new ones. */
class RunningCalls implements NodeCalls {
  #ends: (() => void)[] = [];
  held: ReadonlySet<string> = new Set();

  drain(nodeId: string): Promise<void> {
    this.held = new Set([...this.held, nodeId]);
    return new Promise((resolve) => this.#ends.push(resolve));
  }

  hold(nodeIds: ReadonlySet<string>): void {
    this.held = nodeIds;
  }

  endAll(): void {
    for (const end of this.#ends.splice(0)) end();
  }
}

describe.each(STORES)("on $name", ({ open }) => {
  let fixture: NodeFixture;
  let calls: RunningCalls;

  const start = async (): Promise<string> => {
    calls = new RunningCalls();
    fixture = await nodeFixture(open, { calls });
    const { node } = await fixture.createEnrolled("Box");
    await reportReady(node.id);
    return node.id;
  };
  afterEach(async () => {
    fixture.drain.close();
    await fixture.close();
  });

  const desired = (id: string): Promise<DesiredState> => fixture.reports.desiredState(id);

  async function reportReady(id: string): Promise<void> {
    const state = await desired(id);
    const workloadReports = state.workloads.length === 0 ? [] : [reportFor(state)];
    await fixture.reports.ready(id, { id, workloadReports, operatingSystem: "", workerImageDigest: "" });
  }

  async function history(id: string): Promise<string[]> {
    const events = await fixture.nodes.events(OWNER, id, { limit: 100, after: null });
    return events.map(({ kind, message }) => `${kind}: ${message}`).reverse();
  }

  async function actions(): Promise<string[]> {
    const rows = fixture.store.db.selectFrom("audit_event").select("action").orderBy("id");
    return (await rows.execute()).map(({ action }) => action).filter((action) => /drain|resume|restart/.test(action));
  }

  describe("draining a node", () => {
    it("returns immediately, lets calls finish, then stops the workloads, and records why at each step", async () => {
      const id = await start();
      const before = await desired(id);
      const node = await fixture.life.drain(OWNER, id, HOUR_MS);
      expect(node.status).toBe("draining");
      expect(node.statusMessage).toContain("usr_a@example.org drained this node");
      await expect.poll(() => calls.held.has(id)).toBe(true);
      expect(await desired(id)).toEqual(before);
      await reportReady(id);
      expect(await fixture.statusOf(id)).toBe("draining");
      calls.endAll();
      await expect.poll(() => fixture.statusOf(id)).toBe("drained");
      expect(await desired(id)).toEqual({ ...before, generation: before.generation + 1, workloads: [] });
      await reportReady(id);
      expect(await fixture.statusOf(id)).toBe("drained");
      expect((await history(id)).slice(-2)).toEqual([
        expect.stringContaining("drain_requested: usr_a@example.org"),
        "drained: usr_a@example.org drained this node. The last call has finished; stopping the workloads.",
      ]);
    });

    it("changes nothing when it is repeated, even after the node is drained", async () => {
      const id = await start();
      await fixture.life.drain(OWNER, id, HOUR_MS);
      await fixture.life.drain(OWNER, id, 1000);
      expect((await fixture.stores.nodes.find(id))?.drainUntil).toBe(fixture.clock.now() + HOUR_MS);
      calls.endAll();
      await expect.poll(() => fixture.statusOf(id)).toBe("drained");
      expect((await fixture.life.drain(OWNER, id, HOUR_MS)).status).toBe("drained");
      expect(await actions()).toEqual(["node.drain"]);
    });

    it("stops waiting at its time limit, and says so", async () => {
      const id = await start();
      await fixture.life.drain(OWNER, id, 0);
      await expect.poll(() => fixture.statusOf(id)).toBe("drained");
      expect((await history(id)).at(-1)).toContain("time limit");
    });

    it("continues after a server restart with the remaining time, and admits no calls in between", async () => {
      const id = await start();
      await fixture.life.drain(OWNER, id, HOUR_MS);
      fixture.drain.close();
      calls.held = new Set();
      await fixture.drain.sweep();
      expect(calls.held).toEqual(new Set([id]));
      expect(await fixture.statusOf(id)).toBe("draining");
      fixture.drain.close();
      fixture.clock.advance(HOUR_MS);
      await fixture.drain.sweep();
      await expect.poll(() => fixture.statusOf(id)).toBe("drained");
      await fixture.drain.sweep();
      expect(calls.held).toEqual(new Set([id]));
    });

    it("persists through restarts of the daemon and the server (gpustack/gpustack#4207)", async () => {
      const id = await start();
      const served = await desired(id);
      await fixture.life.drain(OWNER, id, 0);
      await expect.poll(() => fixture.statusOf(id)).toBe("drained");
      fixture.drain.close();
      calls.held = new Set();
      await fixture.drain.sweep();
      expect(calls.held).toEqual(new Set([id]));
      await reportReady(id);
      // What the daemon ran last, told by one that has not heard of the drain yet.
      await fixture.reports.ready(id, {
        id,
        workloadReports: [reportFor(served)],
        operatingSystem: "",
        workerImageDigest: "",
      });
      expect(await fixture.statusOf(id)).toBe("drained");
      expect((await desired(id)).workloads).toEqual([]);
    });

    it("is refused if no daemon has enrolled, and to users without permission", async () => {
      const id = await start();
      const fresh = await fixture.create("Fresh");
      await expect(fixture.life.drain(OWNER, fresh.id, 0)).rejects.toMatchObject({ code: "node_not_enrolled" });
      for (const ask of [
        () => fixture.life.drain(VIEWER, id, 0),
        () => fixture.life.resume(VIEWER, id),
        () => fixture.life.restart(VIEWER, id),
      ]) {
        await expect(ask()).rejects.toMatchObject({ code: "permission_denied" });
      }
      await expect(fixture.life.drain(STRANGER, id, 0)).rejects.toMatchObject({ code: "not_found" });
      expect(await fixture.statusOf(id)).toBe("active");
      expect(await actions()).toEqual([]);
    });
  });

  describe("resuming a node", () => {
    it("runs the same workloads again, and makes the node active once they are ready", async () => {
      const id = await start();
      const before = await desired(id);
      await fixture.life.drain(OWNER, id, 0);
      await expect.poll(() => fixture.statusOf(id)).toBe("drained");
      const pushed: string[] = [];
      fixture.changes.listen(({ aspect }) => pushed.push(aspect));
      expect((await fixture.life.resume(OWNER, id)).status).toBe("starting");
      expect(pushed).toContain("desired");
      const after = await desired(id);
      expect(after).toEqual({ ...before, generation: before.generation + 2 });
      expect(calls.held).toEqual(new Set());
      await reportReady(id);
      expect(await fixture.statusOf(id)).toBe("active");
      await fixture.life.resume(OWNER, id);
      expect(await fixture.statusOf(id)).toBe("active");
      expect(await actions()).toEqual(["node.drain", "node.resume"]);
    });

    it("cancels a drain in progress, and the workloads keep running", async () => {
      const id = await start();
      const before = await desired(id);
      await fixture.life.drain(OWNER, id, HOUR_MS);
      await fixture.life.resume(OWNER, id);
      calls.endAll();
      expect((await desired(id)).workloads).toEqual(before.workloads);
      await reportReady(id);
      await fixture.drain.sweep();
      expect(await fixture.statusOf(id)).toBe("active");
      expect(calls.held).toEqual(new Set());
    });
  });

  it("a drained node is back in service after its machine is reinstalled", async () => {
    const id = await start();
    await fixture.life.drain(OWNER, id, 0);
    await expect.poll(() => fixture.statusOf(id)).toBe("drained");
    await fixture.enroll(id);
    await fixture.drain.sweep();
    expect((await desired(id)).workloads).toHaveLength(1);
    expect(calls.held).toEqual(new Set());
  });

  describe("restarting a node's engine", () => {
    it("changes the spec each time, and the history says who requested it", async () => {
      const id = await start();
      const hash = async (): Promise<string | undefined> => (await desired(id)).workloads[0]?.specHash;
      const hashes = [await hash()];
      for (const _time of [1, 2]) {
        await fixture.life.restart(OWNER, id);
        hashes.push(await hash());
      }
      expect(new Set(hashes).size).toBe(3);
      expect((await desired(id)).generation).toBe(3);
      expect((await history(id)).at(-1)).toBe("restart_requested: usr_a@example.org restarted the engine.");
      expect(await actions()).toEqual(["node.restart", "node.restart"]);
    });

    it("is refused while the node is out of service, or has no engine or no daemon", async () => {
      const id = await start();
      const bare = await fixture.createEnrolled("Bare", null);
      await expect(fixture.life.restart(OWNER, bare.node.id)).rejects.toMatchObject({ code: "invalid_request" });
      const fresh = await fixture.create("Fresh");
      await expect(fixture.life.restart(OWNER, fresh.id)).rejects.toMatchObject({ code: "node_not_enrolled" });
      await fixture.life.drain(OWNER, id, HOUR_MS);
      await expect(fixture.life.restart(OWNER, id)).rejects.toMatchObject({ code: "node_out_of_service" });
      expect(await actions()).toEqual(["node.drain"]);
    });
  });
});
