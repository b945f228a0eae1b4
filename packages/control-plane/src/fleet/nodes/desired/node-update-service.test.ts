import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { STORES } from "../../../testing.fixture.ts";
import {
  INSTALLATION,
  type NodeFixture,
  nodeFixture,
  OWNER,
  PROJECT,
  reportFor,
  STRANGER,
  VIEWER,
} from "../node.fixture.ts";
import type { NodeChange } from "../node-change-feed.ts";
import type { UpdateNode } from "./node-update-service.ts";

describe.each(STORES)("on $name", ({ open }) => {
  let fixture: NodeFixture;
  let seen: NodeChange[];
  beforeEach(async () => {
    fixture = await nodeFixture(open);
    seen = [];
    fixture.changes.listen((change) => seen.push(change));
  });
  afterEach(() => fixture.close());

  function update(changes: Partial<UpdateNode>): UpdateNode {
    return { node: {}, updateMask: null, providerKeys: {}, ...changes };
  }

  describe("updating a node", () => {
    it("makes a new generation for a changed engine config, and notifies subscribers of the change", async () => {
      const { id } = await fixture.create("Box");
      await fixture.nodeChanges.update(OWNER, id, update({ node: { engineConfig: { image: "other:2" } } }));
      const desired = await fixture.reports.desiredState(id);
      expect(desired.generation).toBe(2);
      expect(desired.workloads[0]?.image).toBe("other:2");
      expect(seen).toEqual([{ nodeId: id, projectId: PROJECT, aspect: "desired" }]);
    });

    it("is recorded in the node's history with the user, and is found by kind and time", async () => {
      const { id } = await fixture.create("Box");
      fixture.clock.advance(1000);
      await fixture.nodeChanges.update(OWNER, id, update({ node: { name: "Rack" } }));
      await fixture.nodeChanges.update(OWNER, id, update({ node: { engineConfig: { image: "other:2" } } }));
      const all = { limit: 10, after: null };
      const kinds = ["update_requested", "drain_requested"];
      const [event, ...others] = await fixture.nodes.events(OWNER, id, { ...all, kinds });
      expect(others).toEqual([]);
      expect(event?.message).toBe("usr_a@example.org changed the engine's config: requested generation 2.");
      const later = await fixture.nodes.events(OWNER, id, { ...all, since: fixture.clock.now() });
      expect(later.map(({ kind }) => kind)).toEqual(["update_requested"]);
      expect(await fixture.nodes.events(OWNER, id, { ...all, since: fixture.clock.now() + 1 })).toEqual([]);
    });

    it("keeps the generation when only the name changes, and never changes the identifier", async () => {
      const { id } = await fixture.create("Box");
      const node = await fixture.nodeChanges.update(OWNER, id, update({ node: { name: "Rack" } }));
      expect(node).toMatchObject({ name: "Rack", identifier: "box" });
      expect((await fixture.reports.desiredState(id)).generation).toBe(1);
    });

    it("stores provider keys as secrets under the name that programs expect, and deletes one that is set to null", async () => {
      const { id } = await fixture.create("Box");
      await fixture.nodeChanges.update(OWNER, id, update({ providerKeys: { openai: "sk-1", "open-router": "sk-2" } }));
      await fixture.nodeChanges.update(OWNER, id, update({ providerKeys: { openai: null } }));
      const names = await fixture.nodeSecrets.list(OWNER, id);
      expect(names.map(({ name }) => name)).toEqual(["OPEN_ROUTER_API_KEY"]);
    });

    it("writes nothing if any part of it is invalid", async () => {
      const { id } = await fixture.create("Box");
      const badKey = update({ node: { name: "New" }, providerKeys: { openai: "" } });
      const badName = update({ node: { name: "" }, providerKeys: { openai: "sk-1" } });
      await expect(fixture.nodeChanges.update(OWNER, id, badKey)).rejects.toMatchObject({
        param: "providerKeys.openai",
      });
      await expect(fixture.nodeChanges.update(OWNER, id, badName)).rejects.toMatchObject({ param: "node.name" });
      expect((await fixture.nodes.get(OWNER, id)).name).toBe("Box");
      expect(await fixture.nodeSecrets.list(OWNER, id)).toEqual([]);
    });

    it("is refused to viewers and strangers", async () => {
      const { id } = await fixture.create("Box");
      await expect(fixture.nodeChanges.update(VIEWER, id, update({}))).rejects.toMatchObject({
        code: "permission_denied",
      });
      await expect(fixture.nodeChanges.update(STRANGER, id, update({}))).rejects.toMatchObject({ code: "not_found" });
    });
  });

  describe("deleting a node", () => {
    it("revokes its identity immediately, deletes secrets and history, and notifies connection holders", async () => {
      const { node } = await fixture.createEnrolled("Box");
      await fixture.nodeSecrets.put(OWNER, node.id, { name: "TOKEN", value: "x" });
      await fixture.nodeChanges.delete(OWNER, node.id);
      expect(await fixture.identities.find(node.id)).toBeNull();
      expect(await fixture.secrets.list(node.id)).toEqual([]);
      expect(seen.at(-1)).toMatchObject({ nodeId: node.id, aspect: "removed" });
      await expect(fixture.nodes.get(OWNER, node.id)).rejects.toMatchObject({ code: "not_found" });
    });

    it("frees its identifier for the next node of that name", async () => {
      const { id } = await fixture.create("Box");
      await fixture.nodeChanges.delete(OWNER, id);
      expect((await fixture.create("Box")).identifier).toBe("box");
    });
  });

  describe("the version of a node's engine", () => {
    it("is the last one reported, even when the engine is stopped, and is unknown before any report", async () => {
      const { node } = await fixture.createEnrolled("Box");
      await expect(fixture.reports.engineVersion(node.id)).rejects.toMatchObject({ code: "no_running_engine" });
      const desired = await fixture.reports.desiredState(node.id);
      const observe = (changes: Parameters<typeof reportFor>[1]): Promise<void> =>
        fixture.reports.observe(node.id, {
          epoch: INSTALLATION.epoch,
          generation: desired.generation,
          workloadReports: [reportFor(desired, changes)],
        });
      await observe({ version: "0.7.0" });
      await observe({ version: "", ready: false, state: "backing-off" });
      expect(await fixture.reports.engineVersion(node.id)).toBe("0.7.0");
    });
  });

  describe("counting active nodes", () => {
    it("counts those of the caller's projects, or of one project, never a stranger's", async () => {
      const { node } = await fixture.createEnrolled("Box");
      await fixture.create("Not active");
      await fixture.status.apply(node.id, "reported_ready", "test");
      expect(await fixture.nodes.countActive(VIEWER, null)).toBe(1);
      expect(await fixture.nodes.countActive(OWNER, PROJECT)).toBe(1);
      expect(await fixture.nodes.countActive(STRANGER, null)).toBe(0);
      await expect(fixture.nodes.countActive(STRANGER, PROJECT)).rejects.toMatchObject({ code: "not_found" });
    });
  });
});
