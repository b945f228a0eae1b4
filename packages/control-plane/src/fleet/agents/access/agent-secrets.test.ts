import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { STORES } from "../../../testing.fixture.ts";
import type { AgentHostFacts } from "../../nodes/agents/agent-hosts.ts";
import { type NodeKey, OWNER, PROJECT, STRANGER, VIEWER } from "../../nodes/node.fixture.ts";
import type { NodeChange } from "../../nodes/node-change-feed.ts";
import { OwnedSecretService } from "../../secrets/owned-secret-service.ts";
import { SecretService } from "../../secrets/secret-service.ts";
import { SecretStore } from "../../secrets/secret-store.ts";
import { type AgentFixture, agentFixture } from "../definition/agent.fixture.ts";
import { AgentSecretOwners } from "./agent-secret-owners.ts";

const VALUE = "line one\nline two é\u{1f511}\n";
const CONFIG = { secrets: { TOKEN: { as: "file" }, KEY: { as: "env" } } } as const;

describe.each(STORES)("an agent's secrets on $name", ({ open }) => {
  let world: AgentFixture;
  let node: string;
  let seen: NodeChange[];
  beforeEach(async () => {
    world = await agentFixture(open);
    node = await world.node("Box");
    seen = [];
    world.nodes.changes.listen((change) => seen.push(change));
  });
  afterEach(() => world.close());

  const put = (id: string, value = VALUE, name = "TOKEN") => world.agentSecrets.put(OWNER, id, { name, value });
  const list = (id: string) => world.agentSecrets.list(OWNER, id);
  const move = (id: string, to: string) =>
    world.agentChanging.update(OWNER, id, { runtimeProvider: `node:${to}`, force: false });
  const ask = (from: string, id: string, name = "TOKEN") => world.agentSecrets.deliver(from, `${id}.${name}`);
  const rows = async () => JSON.stringify(await world.nodes.store.db.selectFrom("agent_secret").selectAll().execute());

  async function workload(id: string, on = node) {
    const { generation, workloads } = await world.nodes.reports.desiredState(on);
    const { secrets, specHash } = workloads.find(({ workloadId }) => workloadId === id) ?? {};
    const version = secrets?.find(({ name }) => name === "TOKEN")?.version;
    return { generation, specHash, version };
  }

  /** A node that takes direct secrets, enrolled. */
  async function direct(name: string): Promise<{ readonly id: string; readonly key: NodeKey }> {
    const input = { projectId: PROJECT, planId: "byo", name, directSecrets: true, engineConfig: null };
    const { id } = await world.nodes.nodes.create(OWNER, input);
    const key = await world.nodes.enroll(id);
    await world.report(id, {});
    await world.nodes.status.apply(id, "reported_ready", "All workloads are ready.");
    return { id, key };
  }

  async function opened(key: NodeKey, answer: Awaited<ReturnType<typeof ask>>) {
    if (answer.state !== "sealed") throw new Error(`it is ${answer.state}`);
    return key.sealing.open(answer.jwe);
  }

  describe("when people manage them", () => {
    test("get a new version with every put, even after a deletion, and are listed without a value", async () => {
      const { id } = await world.create(node);
      expect(await put(id)).toMatchObject({ name: "TOKEN", version: 1, stale: false });
      expect(await put(id)).toMatchObject({ version: 2 });
      await world.agentSecrets.delete(OWNER, id, "TOKEN");
      await world.agentSecrets.delete(OWNER, id, "TOKEN");
      expect(await list(id)).toEqual([]);
      expect((await put(id, "other")).version).toBe(3);
      expect(await list(id)).toEqual([{ name: "TOKEN", version: 3, updatedAt: expect.any(Number), stale: false }]);
      await expect(world.agentSecrets.delete(OWNER, id, "TOKNE")).rejects.toMatchObject({
        code: "not_found",
        message: "This agent has no secret with that name.",
      });
    });

    test("get different versions from two concurrent puts", async () => {
      const { id } = await world.create(node);
      const both = await Promise.all([put(id, "a"), put(id, "b")]);
      expect(new Set(both.map(({ version }) => version))).toEqual(new Set([1, 2]));
    });

    test("are only for those who manage agents, and a stranger gets not found", async () => {
      const { id } = await world.create(node);
      const secret = { name: "TOKEN", value: "x" };
      for (const [caller, code] of [
        [VIEWER, "permission_denied"],
        [STRANGER, "not_found"],
      ] as const) {
        await expect(world.agentSecrets.put(caller, id, secret)).rejects.toMatchObject({ code });
        await expect(world.agentSecrets.list(caller, id)).rejects.toMatchObject({ code });
        await expect(world.agentSecrets.delete(caller, id, "TOKEN")).rejects.toMatchObject({ code });
      }
      expect(await rows()).toBe("[]");
    });

    test("are separate from those of the node and of other agents", async () => {
      const [{ id }, neighbour] = [await world.create(node), await world.create(node)];
      await world.nodes.nodeSecrets.put(OWNER, node, { name: "TOKEN", value: "the node's" });
      await put(neighbour.id);
      expect(await list(id)).toEqual([]);
    });

    test("leave no value in the audit log, and are deleted with their agent", async () => {
      const { id } = await world.running(node, { config: CONFIG });
      await put(id, "very-secret");
      await world.agentSecrets.delete(OWNER, id, "KEY");
      const events = await world.nodes.store.db.selectFrom("audit_event").selectAll().execute();
      const told = JSON.stringify(events.filter(({ action }) => action.startsWith("agent.secret.")));
      expect(told).toContain("agent.secret.put");
      expect(told).toContain("agent.secret.delete");
      for (const encoding of ["utf8", "base64", "base64url", "hex"] as const)
        expect(told).not.toContain(Buffer.from("very-secret").toString(encoding));
      await world.agentLife.delete(OWNER, id, false);
      await expect(put(id)).rejects.toMatchObject({ code: "agent_deleting" });
      await world.obey(node);
      expect(await world.find(id)).toBeNull();
      expect(await rows()).toBe("[]");
    });
  });

  describe("in the desired state of its node", () => {
    test("make a new generation while the agent is wanted; a changed variable recreates the container, a changed file does not", async () => {
      const { id } = await world.running(node, { config: CONFIG });
      const before = await workload(id);
      seen.length = 0;
      await put(id, "next");
      const file = await workload(id);
      expect(file).toEqual({ ...before, generation: before.generation + 1, version: expect.stringMatching(/^2\./) });
      expect(seen).toEqual([{ nodeId: node, projectId: PROJECT, aspect: "desired" }]);
      await put(id, "next", "KEY");
      expect((await workload(id)).specHash).not.toBe(before.specHash);
      await world.agentSecrets.delete(OWNER, id, "TOKEN");
      expect(await workload(id)).toMatchObject({ generation: before.generation + 3, version: null });
      expect(seen).toHaveLength(3);
    });

    test("do not affect the node while the agent is not wanted or does not use them", async () => {
      const { id } = await world.create(node, { config: CONFIG });
      const { generation } = await workload(id);
      await put(id);
      const running = await world.running(node);
      const after = await workload(running.id);
      seen.length = 0;
      await put(running.id, "x", "UNUSED");
      expect((await workload(running.id)).generation).toBe(after.generation);
      expect(after.generation).toBe(generation + 1);
      expect(seen).toEqual([]);
    });
  });

  describe("during delivery to the node", () => {
    test("are encrypted to its key, byte for byte, each bound to the node, the agent, the name and the version", async () => {
      const { id } = await world.create(node, { config: CONFIG });
      const key = await world.nodes.enroll(node);
      await put(id);
      await put(id, "k", "KEY");
      await world.agentLife.start(OWNER, id);
      const answer = await ask(node, id);
      const { version } = await workload(id);
      expect(answer).toMatchObject({ version });
      expect(await opened(key, answer)).toEqual({ value: VALUE, binding: `${node} ${id}.TOKEN ${version}` });
    });

    test("are missing for every other node, while the agent is stopped, and where none was set", async () => {
      const other = await world.node("Other");
      const { id } = await world.running(node, { config: CONFIG });
      expect(await ask(node, id)).toMatchObject({ state: "sealed" });
      expect(await ask(other, id)).toEqual({ state: "missing" });
      expect(await ask(node, id, "NONE")).toEqual({ state: "missing" });
      expect(await world.agentSecrets.deliver(node, "TOKEN")).toEqual({ state: "missing" });
      await move(id, other);
      expect(await ask(node, id)).toEqual({ state: "missing" });
      expect(await ask(other, id)).toEqual({ state: "missing" });
      await world.obey(node);
      expect(await ask(other, id)).toMatchObject({ state: "sealed" });
      await world.agentLife.stop(OWNER, id);
      expect(await ask(other, id)).toEqual({ state: "missing" });
    });
  });

  describe("on nodes with direct secrets", () => {
    test("are encrypted to the node's key only, and are delivered unchanged", async () => {
      const box = await direct("Direct");
      const { id } = await world.create(box.id, { config: CONFIG });
      await put(id);
      await put(id, "k", "KEY");
      await world.agentLife.start(OWNER, id);
      const answer = await ask(box.id, id);
      const record = await new SecretStore(world.nodes.store.db, "agent").find(id, "TOKEN");
      expect(answer).toMatchObject({ jwe: record?.sealed });
      expect(record?.sealedBy).toBe("node");
      expect((await opened(box.key, answer)).value).toBe(VALUE);
    });

    test("become stale when the agent moves, are named at its start, and work once they are set again", async () => {
      const [first, second] = [await direct("One"), await direct("Two")];
      const { id } = await world.create(first.id, { config: CONFIG });
      await put(id);
      await put(id, "k", "KEY");
      await move(id, second.id);
      expect(await list(id)).toMatchObject([
        { name: "KEY", stale: true },
        { name: "TOKEN", stale: true },
      ]);
      await put(id, "k", "KEY");
      await expect(world.agentLife.start(OWNER, id)).rejects.toMatchObject({
        code: "missing_secrets",
        missingSecrets: [{ name: "TOKEN", connectorSlug: null, stale: true }],
        message: expect.stringContaining("TOKEN, which the node cannot decrypt and must be set again"),
      });
      await put(id, "new");
      await world.agentLife.start(OWNER, id);
      expect((await opened(second.key, await ask(second.id, id))).value).toBe("new");
      await world.nodes.enroll(second.id);
      expect(await ask(second.id, id)).toEqual({ state: "stale" });
    });

    test("follow an agent from a node without direct secrets, encrypted to the new key on delivery", async () => {
      const box = await direct("Direct");
      const { id } = await world.running(node, { config: CONFIG });
      await put(id);
      await move(id, box.id);
      await world.obey(node);
      expect((await opened(box.key, await ask(box.id, id))).value).toBe(VALUE);
      expect(await list(id)).toMatchObject([{ stale: false }, { stale: false }]);
    });

    test("are never encrypted to a node that the agent leaves in the meantime", async () => {
      const [first, second] = [await direct("One"), await direct("Two")];
      const { id } = await world.create(first.id);
      const { access, audit, agentHosts, clock, store } = world.nodes;
      const asked: string[] = [];
      const facts = async (nodeId: string): Promise<AgentHostFacts | null> => {
        const found = await agentHosts.facts(nodeId);
        if (asked.push(nodeId) === 1) await move(id, second.id);
        return found;
      };
      const hosts = {
        facts,
        announce: () => undefined,
        replanWithin: agentHosts.replanWithin.bind(agentHosts),
      };
      const owners = new AgentSecretOwners({ ...world, hosts, access });
      const sealer = { keyId: "none", seal: fail, open: fail };
      const secrets = new SecretService({ kind: "agent", db: store.db, clock, sealer });
      await new OwnedSecretService({ owners, secrets, audit }).put(OWNER, id, { name: "TOKEN", value: VALUE });
      expect(asked).toEqual([first.id, second.id]);
      expect(await list(id)).toEqual([{ name: "TOKEN", version: 1, updatedAt: expect.any(Number), stale: false }]);
    });

    test("cannot be set before the node enrolls (409), or after the agent's node was deleted", async () => {
      const input = { projectId: PROJECT, planId: "byo", name: "Bare", directSecrets: true, engineConfig: null };
      const bare = await world.nodes.nodes.create(OWNER, input);
      const { id } = await world.create(bare.id);
      await expect(put(id)).rejects.toMatchObject({ code: "node_not_enrolled" });
      await world.nodes.nodeChanges.delete(OWNER, bare.id);
      await expect(put(id)).rejects.toMatchObject({ code: "invalid_request", param: "runtimeProvider" });
      expect(await list(id)).toEqual([]);
    });
  });
});

const fail = (): Promise<never> => Promise.reject(new Error("the master key has nothing to do here"));
