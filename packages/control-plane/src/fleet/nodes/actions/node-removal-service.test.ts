import { pino } from "pino";
import { afterEach, describe, expect, it } from "vitest";
import { STORES } from "../../../testing.fixture.ts";
import {
  type NodeFixture,
  type NodeFixtureOptions,
  nodeFixture,
  OTHER_PROJECT,
  PROJECT,
  reportFor,
} from "../node.fixture.ts";
import { type NodeCalls, NodeDrainService } from "./node-drain-service.ts";
import { NodeRemovalService } from "./node-removal-service.ts";

/** So long that a test which waits for it has failed. */
const HOUR_MS = 3_600_000;
const GO_ON = new AbortController().signal;

/** Calls that run on every node until the test ends them. */
class RunningCalls implements NodeCalls {
  readonly #ends: (() => void)[] = [];
  readonly asked: string[] = [];

  hold(): void {}

  drain(nodeId: string): Promise<void> {
    this.asked.push(nodeId);
    return new Promise((resolve) => this.#ends.push(resolve));
  }

  endAll(): void {
    for (const end of this.#ends) end();
  }
}

describe.each(STORES)("on $name", ({ open }) => {
  let fixture: NodeFixture;
  afterEach(() => fixture.close());

  const start = async (options: NodeFixtureOptions = {}): Promise<void> => {
    fixture = await nodeFixture(open, options);
  };

  async function activeNode(name: string): Promise<string> {
    const { node } = await fixture.createEnrolled(name);
    const report = reportFor(await fixture.reports.desiredState(node.id));
    const ready = { id: node.id, workloadReports: [report], operatingSystem: "", workerImageDigest: "" };
    await fixture.reports.ready(node.id, ready);
    return node.id;
  }

  const left = async (): Promise<string[]> =>
    (await fixture.stores.nodes.list(PROJECT, { limit: 100, after: null })).map(({ id }) => id);

  const deletions = async (): Promise<string[]> => {
    const { db } = fixture.store;
    const rows = db.selectFrom("audit_event").select("resource_id").where("action", "=", "node.delete").orderBy("id");
    return (await rows.execute()).map((row) => row.resource_id);
  };

  describe("removing the nodes of a project", () => {
    it("waits for running calls, admits no new ones, and then revokes and removes each node", async () => {
      const calls = new RunningCalls();
      await start({ calls, drainMs: HOUR_MS });
      const id = await activeNode("Box");
      const removed: string[] = [];
      fixture.changes.listen(({ nodeId, aspect }) => {
        if (aspect === "removed") removed.push(nodeId);
      });
      expect((await fixture.engines.list(PROJECT)).map(({ absence }) => absence)).toEqual([null]);
      const ending = fixture.removal.removeAll(PROJECT, GO_ON);
      await expect.poll(() => calls.asked).toEqual([id]);
      expect(await fixture.statusOf(id)).toBe("draining");
      expect((await fixture.engines.list(PROJECT)).map(({ absence }) => absence)).toEqual([
        expect.stringMatching(/has been draining since/),
      ]);
      expect(await fixture.identities.find(id)).toMatchObject({ projectId: PROJECT, projectDeleting: false });
      await fixture.store.db.updateTable("project").set({ deleting_since: 1 }).where("id", "=", PROJECT).execute();
      expect(await fixture.identities.find(id)).toMatchObject({ projectId: PROJECT, projectDeleting: true });
      calls.endAll();
      await ending;
      expect(await left()).toEqual([]);
      expect(await fixture.identities.find(id)).toBeNull();
      expect(removed).toEqual([id]);
      expect(await deletions()).toEqual([id]);
    });

    it("waits no longer than its time limit", async () => {
      const calls = new RunningCalls();
      await start({ calls, drainMs: 1 });
      await activeNode("Box");
      await fixture.removal.removeAll(PROJECT, GO_ON);
      expect(calls.asked).toHaveLength(1);
      expect(await left()).toEqual([]);
    });

    it("does not wait for a node without calls, and does not affect other projects", async () => {
      const calls = new RunningCalls();
      await start({ calls, drainMs: HOUR_MS });
      await fixture.create("New");
      const { id } = await fixture.create("Elsewhere");
      const elsewhere = fixture.store.db.updateTable("node").set({ project_id: OTHER_PROJECT }).where("id", "=", id);
      await elsewhere.execute();
      await fixture.removal.removeAll(PROJECT, GO_ON);
      expect(calls.asked).toEqual([]);
      expect(await left()).toEqual([]);
      expect(await fixture.statusOf(id)).toBe("provisioning");
    });

    it("stops with the server, and does not restart the wait at the next start", async () => {
      const calls = new RunningCalls();
      await start({ calls, drainMs: HOUR_MS });
      const id = await activeNode("Box");
      const stop = new AbortController();
      const ending = fixture.removal.removeAll(PROJECT, stop.signal);
      await expect.poll(() => calls.asked).toEqual([id]);
      stop.abort();
      await expect(ending).rejects.toThrow("aborted");
      expect(await fixture.statusOf(id)).toBe("draining");
      fixture.clock.advance(HOUR_MS);
      await fixture.removal.removeAll(PROJECT, GO_ON);
      expect(await left()).toEqual([]);
    });

    it.each([
      ["drain", 0],
      ["drain", 2],
      ["remove", 0],
      ["remove", 1],
      ["remove", 2],
    ] as const)(
      "continues after a crash at the %s that follows %i others, and records each node once",
      async (step, done) => {
        await start();
        const ids: string[] = [];
        for (const name of ["One", "Two", "Three"]) ids.push(await activeNode(name));
        await expect(crashing(step, done).removeAll(PROJECT, GO_ON)).rejects.toThrow("the process died");
        expect(await left()).toHaveLength(step === "drain" ? ids.length : ids.length - done);
        await fixture.removal.removeAll(PROJECT, GO_ON);
        expect(await left()).toEqual([]);
        expect((await deletions()).toSorted()).toEqual(ids.toSorted());
      },
    );
  });

  /** Dies at one step after so many of its kind. */
  function crashing(step: "drain" | "remove", after: number): NodeRemovalService {
    let count = 0;
    const die = (now: string): void => {
      if (now === step && count++ === after) throw new Error("the process died");
    };
    const { stores, status, clock, nodeChanges } = fixture;
    const calls: NodeCalls = {
      drain: async () => {
        die("drain");
      },
      hold: () => undefined,
    };
    const agents = { gone: async () => undefined };
    return new NodeRemovalService({
      stores,
      drain: new NodeDrainService({ stores, status, clock, calls, agents, log: pino({ level: "silent" }) }),
      nodeChanges: {
        remove: (...args) => {
          die("remove");
          return nodeChanges.remove(...args);
        },
      },
    });
  }
});
