import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { STORES } from "../../../testing.fixture.ts";
import { type NodeFixture, nodeFixture, OWNER, PROJECT, STRANGER, VIEWER } from "../node.fixture.ts";
import type { NodeRecord } from "../node.ts";
import type { NodeChange } from "../node-change-feed.ts";

const VALUE = "line one\nline two \u00e9\u{1f511}\n";
const ENGINE = { image: "engine:1", secrets: { TOKEN: { as: "file" } } } as const;

describe.each(STORES)("a node's secrets on $name", ({ open }) => {
  let fixture: NodeFixture;
  let seen: NodeChange[];
  beforeEach(async () => {
    fixture = await nodeFixture(open);
    seen = [];
    fixture.changes.listen((change) => seen.push(change));
  });
  afterEach(() => fixture.close());

  const put = (id: string, value = VALUE, name = "TOKEN") => fixture.nodeSecrets.put(OWNER, id, { name, value });
  const list = (id: string) => fixture.nodeSecrets.list(OWNER, id);

  function createDirect(): Promise<NodeRecord> {
    const node = { projectId: PROJECT, planId: "byo", name: "Direct", directSecrets: true, engineConfig: ENGINE };
    return fixture.nodes.create(OWNER, node);
  }

  async function delivered(id: string, name = "TOKEN"): Promise<{ readonly version: string; readonly jwe: string }> {
    const answer = await fixture.nodeSecrets.deliver(id, name);
    if (answer.state !== "sealed") throw new Error(`it is ${answer.state}`);
    return answer;
  }

  async function wanted(
    id: string,
  ): Promise<{ readonly generation: number; readonly version: string | null | undefined }> {
    const { generation, workloads } = await fixture.reports.desiredState(id);
    return { generation, version: workloads[0]?.secrets?.find(({ name }) => name === "TOKEN")?.version };
  }

  describe("when people manage them", () => {
    it("get a new version with every put, even after a deletion, and are listed without a value", async () => {
      const { id } = await fixture.create("Box");
      expect(await put(id)).toMatchObject({ name: "TOKEN", version: 1, stale: false });
      expect(await put(id)).toMatchObject({ version: 2 });
      await fixture.nodeSecrets.delete(OWNER, id, "TOKEN");
      expect(await list(id)).toEqual([]);
      const third = await put(id, "other");
      expect(third.version).toBe(3);
      expect(await list(id)).toEqual([{ name: "TOKEN", version: 3, updatedAt: fixture.clock.now(), stale: false }]);
    });

    it("can be deleted again after a lost response, while deleting an unknown name fails", async () => {
      const { id } = await fixture.create("Box");
      await put(id);
      await fixture.nodeSecrets.delete(OWNER, id, "TOKEN");
      await fixture.nodeSecrets.delete(OWNER, id, "TOKEN");
      await expect(fixture.nodeSecrets.delete(OWNER, id, "TOKNE")).rejects.toMatchObject({ code: "not_found" });
    });

    it("are only for those who manage nodes", async () => {
      const { id } = await fixture.create("Box");
      const secret = { name: "TOKEN", value: "x" };
      for (const [caller, code] of [
        [VIEWER, "permission_denied"],
        [STRANGER, "not_found"],
      ] as const) {
        await expect(fixture.nodeSecrets.put(caller, id, secret)).rejects.toMatchObject({ code });
        await expect(fixture.nodeSecrets.list(caller, id)).rejects.toMatchObject({ code });
        await expect(fixture.nodeSecrets.delete(caller, id, "TOKEN")).rejects.toMatchObject({ code });
      }
      expect(await list(id)).toEqual([]);
    });

    it("get different versions from two concurrent puts", async () => {
      const { id } = await fixture.create("Box");
      const both = await Promise.all([put(id, "a"), put(id, "b")]);
      expect(new Set(both.map(({ version }) => version))).toEqual(new Set([1, 2]));
    });

    it("are never stored in plain text", async () => {
      const direct = await createDirect();
      await fixture.enroll(direct.id);
      const { id } = await fixture.create("Box");
      for (const node of [direct.id, id]) {
        await put(node, "very-secret");
        const rows = JSON.stringify(await fixture.store.db.selectFrom("node_secret").selectAll().execute());
        for (const encoded of [
          "very-secret",
          ...["base64", "base64url", "hex"].map((e) => Buffer.from("very-secret").toString(e as "hex")),
        ]) {
          expect(rows).not.toContain(encoded);
        }
      }
    });

    it("on a node with direct secrets cannot be set before it enrolls (409)", async () => {
      const { id } = await createDirect();
      await expect(put(id)).rejects.toMatchObject({ code: "node_not_enrolled" });
      await fixture.enroll(id);
      expect(await put(id)).toMatchObject({ version: 1, stale: false });
    });
  });

  describe("in the desired state", () => {
    it("make a new generation of a workload that needs them, and notify its daemon", async () => {
      const { id } = await fixture.create("Box", ENGINE);
      expect(await wanted(id)).toEqual({ generation: 1, version: null });
      await put(id);
      expect(await wanted(id)).toEqual({ generation: 2, version: expect.stringMatching(/^1\./) });
      expect(seen).toEqual([{ nodeId: id, projectId: PROJECT, aspect: "desired" }]);
      await fixture.nodeSecrets.delete(OWNER, id, "TOKEN");
      expect(await wanted(id)).toEqual({ generation: 3, version: null });
    });

    it("do not affect a node where nothing needs them", async () => {
      const { id } = await fixture.create("Box");
      await put(id);
      expect((await fixture.reports.desiredState(id)).generation).toBe(1);
      expect(seen).toEqual([]);
    });

    it("include provider keys for the engine, even after a later put of the same name", async () => {
      const { id } = await fixture.create("Box");
      const update = { node: {}, updateMask: null, providerKeys: { openai: "sk-1" } };
      await fixture.nodeChanges.update(OWNER, id, update);
      const names = async () => (await fixture.reports.desiredState(id)).workloads[0]?.secrets?.map(({ name }) => name);
      expect(await names()).toEqual(["OPENAI_API_KEY"]);
      await put(id, "sk-2", "OPENAI_API_KEY");
      expect(await names()).toEqual(["OPENAI_API_KEY"]);
      await fixture.nodeChanges.update(OWNER, id, { ...update, providerKeys: { openai: null } });
      expect(await names()).toBeUndefined();
      expect(seen.map(({ aspect }) => aspect)).toEqual(["desired", "desired", "desired"]);
    });
  });

  describe("during delivery to the node", () => {
    it("are encrypted to its key, byte for byte, each bound to its node, name and version", async () => {
      const { node, key } = await fixture.createEnrolled("Box", ENGINE);
      await put(node.id);
      const { version, jwe } = await delivered(node.id);
      expect(version).toBe((await wanted(node.id)).version);
      expect(await key.sealing.open(jwe)).toEqual({ value: VALUE, binding: `${node.id} TOKEN ${version}` });
    });

    it("are missing if they were not set, were deleted, or the node has no key yet", async () => {
      const { node } = await fixture.createEnrolled("Box");
      expect(await fixture.nodeSecrets.deliver(node.id, "TOKEN")).toEqual({ state: "missing" });
      await put(node.id);
      await fixture.nodeSecrets.delete(OWNER, node.id, "TOKEN");
      expect(await fixture.nodeSecrets.deliver(node.id, "TOKEN")).toEqual({ state: "missing" });
      const { id } = await fixture.create("Other");
      await put(id);
      expect(await fixture.nodeSecrets.deliver(id, "TOKEN")).toEqual({ state: "missing" });
      await expect(fixture.nodeSecrets.deliver("nod_gone", "TOKEN")).rejects.toMatchObject({ code: "not_found" });
    });

    it("are encrypted to the node's new key after it enrolls again", async () => {
      const { node } = await fixture.createEnrolled("Box");
      await put(node.id);
      const { sealing } = await fixture.enroll(node.id);
      expect((await sealing.open((await delivered(node.id)).jwe)).value).toBe(VALUE);
      expect(await list(node.id)).toMatchObject([{ stale: false }]);
    });

    it("are delivered unchanged if they are direct, and become stale once the node has another key", async () => {
      const { id } = await createDirect();
      const first = await fixture.enroll(id);
      await put(id);
      const { jwe } = await delivered(id);
      expect(await fixture.secrets.find(id, "TOKEN")).toMatchObject({ sealedBy: "node", sealed: jwe });
      expect((await first.sealing.open(jwe)).value).toBe(VALUE);
      const second = await fixture.enroll(id);
      expect(await list(id)).toMatchObject([{ name: "TOKEN", version: 1, stale: true }]);
      expect(await fixture.nodeSecrets.deliver(id, "TOKEN")).toEqual({ state: "stale" });
      await put(id, "new");
      expect(await list(id)).toMatchObject([{ version: 2, stale: false }]);
      expect((await second.sealing.open((await delivered(id)).jwe)).value).toBe("new");
    });
  });
});
