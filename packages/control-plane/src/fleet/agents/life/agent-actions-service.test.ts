import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { STORES } from "../../../testing.fixture.ts";
import { OWNER, STRANGER, VIEWER } from "../../nodes/node.fixture.ts";
import { type AgentFixture, agentFixture } from "../definition/agent.fixture.ts";
import type { AgentRecord } from "../definition/agent.ts";

describe.each(STORES)("the lifecycle of agents on $name", ({ open }) => {
  let world: AgentFixture;
  let node: string;
  let other: string;

  beforeEach(async () => {
    world = await agentFixture(open);
    node = await world.node("Rack 1");
    other = await world.node("Rack 2");
  });
  afterEach(() => world.close());

  const stateOf = async (id: string): Promise<string | undefined> => (await world.find(id))?.lifecycleState;
  const messageOf = async (id: string): Promise<string | undefined> => (await world.find(id))?.observed.message;
  const quiet = async (nodeId: string): Promise<void> => {
    await world.nodes.status.apply(nodeId, "went_quiet", "No heartbeat.");
    await world.follow(nodeId);
  };
  const moveTo = (id: string, nodeId: string, force = false): Promise<AgentRecord> =>
    world.agentChanging.update(OWNER, id, { runtimeProvider: `node:${nodeId}`, force });

  test("a new agent is not started; a started one runs once its node reports it ready, a stopped one until it is reported gone", async () => {
    const { id } = await world.create(node);
    expect(await world.desired(node)).toEqual([]);
    expect(await world.agentLife.start(OWNER, id)).toMatchObject({ lifecycleState: "starting", run: 1 });
    expect(await world.desired(node)).toEqual([id]);
    await world.report(node, { [id]: { state: "pulling", ready: false, progress: 7 } });
    expect(await messageOf(id)).toBe("Pulling its image: 7 %.");
    await world.obey(node);
    expect(await world.find(id)).toMatchObject({ lifecycleState: "running", observed: { message: "Ready." } });
    expect(await world.agentLife.stop(OWNER, id)).toMatchObject({ lifecycleState: "stopping", run: 1 });
    expect(await world.desired(node)).toEqual([]);
    await world.report(node, { [id]: { state: "stopping", ready: false } });
    expect(await stateOf(id)).toBe("stopping");
    await world.obey(node);
    expect(await world.find(id)).toMatchObject({ lifecycleState: "stopped", placement: null });
    const kinds = ["created", "start_requested", "reported_ready", "stop_requested", "reported_gone"];
    expect(await world.kinds(id)).toEqual(kinds);
  });

  test("a run is valid from its start to its stop, and never again", async () => {
    const { id } = await world.running(node);
    expect(await world.standings.find(id)).toMatchObject({ nodeId: node, run: 1, live: true });
    await world.agentLife.stop(OWNER, id);
    expect(await world.standings.find(id)).toMatchObject({ run: 1, live: false });
    // Started again before its node has stopped it: the former run stays void.
    await world.agentLife.start(OWNER, id);
    expect(await world.standings.find(id)).toMatchObject({ run: 1, live: false });
    expect(await world.desired(node)).toEqual([]);
    await world.obey(node);
    expect(await world.standings.find(id)).toMatchObject({ nodeId: node, run: 2, live: true });
    expect(await world.desired(node)).toEqual([id]);
  });

  test("every change is announced after it is committed", async () => {
    const { id, projectId } = await world.running(node);
    const before = world.told.length;
    await world.agentLife.stop(OWNER, id);
    expect(world.told.slice(before)).toEqual([{ agentId: id, projectId }]);
  });

  test("requesting the current state changes nothing", async () => {
    const { id } = await world.running(node);
    const generation = (await world.nodes.reports.desiredState(node)).generation;
    expect(await world.agentLife.start(OWNER, id)).toMatchObject({ lifecycleState: "running", run: 1 });
    await world.agentLife.stop(OWNER, id);
    await world.agentLife.stop(OWNER, id);
    expect((await world.nodes.reports.desiredState(node)).generation).toBe(generation + 1);
    expect((await world.kinds(id)).filter((kind) => kind === "stop_requested")).toHaveLength(1);
  });

  test("a failed agent can be started again, and a report of the failed run does not affect the new one", async () => {
    const { id } = await world.running(node);
    await world.report(node, { [id]: { state: "failed", ready: false, message: "it ends at once" } });
    expect(await world.find(id)).toMatchObject({ lifecycleState: "failed", observed: { message: "it ends at once" } });
    expect(await world.agentLife.start(OWNER, id)).toMatchObject({ lifecycleState: "starting", run: 2 });
    await world.follow(node);
    expect(await stateOf(id)).toBe("starting");
    await world.obey(node);
    expect(await stateOf(id)).toBe("running");
  });

  test("a move waits until the former node reports the agent gone, so that it never runs twice", async () => {
    const { id } = await world.running(node);
    expect(await moveTo(id, other)).toMatchObject({ lifecycleState: "starting", nodeId: other, run: 1 });
    expect([await world.desired(node), await world.desired(other)]).toEqual([[], []]);
    expect(await messageOf(id)).toBe("Waiting for node Rack 1 to stop it.");
    await world.report(node, { [id]: { state: "stopping", ready: false } });
    expect(await world.desired(other)).toEqual([]);
    await world.obey(node);
    expect(await world.find(id)).toMatchObject({ run: 2, placement: { nodeId: other, releasedAt: null } });
    expect(await world.desired(other)).toEqual([id]);
    await world.obey(other);
    expect(await stateOf(id)).toBe("running");
  });

  test("an agent on an unreachable node is shown as possibly running, stays there and recovers by itself", async () => {
    const { id } = await world.running(node);
    await quiet(node);
    expect(await stateOf(id)).toBe("starting");
    expect(await messageOf(id)).toMatch(
      /^Node Rack 1 has not responded since .*\. The agent may still be running there\.$/,
    );
    await expect(moveTo(id, other)).rejects.toMatchObject({ code: "node_unreachable" });
    expect(await world.find(id)).toMatchObject({ nodeId: node, placement: { nodeId: node, releasedAt: null } });
    await world.nodes.status.apply(node, "reported_ready", "All workloads are ready.");
    await world.obey(node);
    expect(await world.find(id)).toMatchObject({ lifecycleState: "running", run: 1 });
  });

  test("a forced move leaves an unreachable node immediately; the former run is invalid and not in that node's desired state", async () => {
    const { id } = await world.running(node);
    await quiet(node);
    expect(await moveTo(id, other, true)).toMatchObject({ lifecycleState: "starting", run: 2 });
    expect([await world.desired(node), await world.desired(other)]).toEqual([[], [id]]);
    expect(await world.standings.find(id)).toMatchObject({ nodeId: other, run: 2, live: true });
  });

  test("a move that waits for a node that became unreachable continues when forced", async () => {
    const { id } = await world.running(node);
    await moveTo(id, other);
    await quiet(node);
    expect(await messageOf(id)).toMatch(
      /has not responded since .* It is started again once that node reports it gone\.$/,
    );
    await world.agentChanging.update(OWNER, id, { force: true });
    expect(await world.desired(other)).toEqual([id]);
  });

  test("a drained node stops the agent and says why; it is still wanted, and starts again when the node is resumed", async () => {
    const { id } = await world.running(node);
    await world.nodes.life.drain(OWNER, node, 60_000);
    await world.follow(node);
    expect(await stateOf(id)).toBe("stopping");
    await world.report(node, {});
    expect(await world.find(id)).toMatchObject({ lifecycleState: "stopped", wanted: true });
    expect(await messageOf(id)).toMatch(
      /^Node Rack 1 is drain(?:ing|ed)\. The agent starts again when the node is resumed\.$/,
    );
    await world.nodes.life.resume(OWNER, node);
    await world.follow(node);
    expect(await stateOf(id)).toBe("starting");
    await world.obey(node);
    expect(await stateOf(id)).toBe("running");
  });

  test("an agent whose node is deleted fails, says what to do, and runs again once it is moved", async () => {
    const { id } = await world.running(node);
    await world.nodes.nodeChanges.delete(OWNER, node);
    await world.follow(node);
    expect(await world.find(id)).toMatchObject({ lifecycleState: "failed", wanted: true, placement: null });
    expect(await messageOf(id)).toBe("Its node was deleted. Set another node as `runtimeProvider`.");
    await expect(world.agentLife.start(OWNER, id)).rejects.toMatchObject({ param: "runtimeProvider" });
    await moveTo(id, other);
    await world.obey(other);
    expect(await world.find(id)).toMatchObject({ lifecycleState: "running", run: 2 });
  });

  test("a deleted agent is invalid immediately, and is removed with its history once it is reported gone", async () => {
    const { id } = await world.running(node);
    await world.agentLife.delete(OWNER, id, false);
    expect(await stateOf(id)).toBe("deleting");
    expect(await world.standings.find(id)).toMatchObject({ live: false });
    await expect(world.agentLife.start(OWNER, id)).rejects.toMatchObject({ code: "agent_deleting" });
    await expect(world.agentLife.stop(OWNER, id)).rejects.toMatchObject({ code: "agent_deleting" });
    await expect(moveTo(id, other)).rejects.toMatchObject({ code: "agent_deleting" });
    await world.obey(node);
    expect(await world.find(id)).toBeNull();
    expect(await world.kinds(id)).toEqual([]);
  });

  test("an agent that runs nowhere is removed immediately; on an unreachable node it must be forced", async () => {
    const idle = await world.create(node);
    await world.agentLife.delete(OWNER, idle.id, false);
    expect(await world.find(idle.id)).toBeNull();
    const { id } = await world.running(node);
    await quiet(node);
    await world.agentLife.delete(OWNER, id, false);
    expect(await stateOf(id)).toBe("deleting");
    await world.agentLife.delete(OWNER, id, true);
    expect(await world.find(id)).toBeNull();
    expect(await world.desired(node)).toEqual([]);
  });

  test("concurrent starts and stops end in one state, that of the last one", async () => {
    const { id } = await world.running(node);
    const calls = [0, 1, 2, 3, 4, 5].map((n) =>
      n % 2 === 0 ? world.agentLife.stop(OWNER, id) : world.agentLife.start(OWNER, id),
    );
    await Promise.all(calls);
    await world.obey(node);
    const agent = await world.find(id);
    expect(await world.desired(node)).toEqual(agent?.wanted === true ? [id] : []);
    expect(agent?.placement?.nodeId ?? null).toBe(agent?.wanted === true ? node : null);
  });

  test("a node whose plan changes is notified: on a stop, a move, a forced move and a deletion", async () => {
    const told: string[] = [];
    world.nodes.changes.listen(({ nodeId, aspect }) => {
      if (aspect === "desired") told.push(nodeId);
    });
    const tellsOf = async (call: () => Promise<unknown>): Promise<string[]> => {
      told.length = 0;
      await call();
      return [...told];
    };
    const { id } = await world.running(node);
    expect(await tellsOf(() => moveTo(id, other, true))).toEqual([node]);
    expect(await tellsOf(() => world.obey(node))).toEqual([other]);
    expect(await tellsOf(() => moveTo(id, node))).toEqual([other]);
    await world.obey(other);
    expect(await tellsOf(() => world.agentLife.stop(OWNER, id))).toEqual([node]);
    await world.obey(node);
    expect(await tellsOf(() => world.agentLife.start(OWNER, id))).toEqual([node]);
    expect(await tellsOf(() => world.agentLife.delete(OWNER, id, true))).toEqual([node]);
  });

  test("agents that swap nodes by force do not deadlock", async () => {
    const agents: [string, string][] = [];
    for (const at of [node, other, node, other]) agents.push([(await world.running(at)).id, at]);
    await quiet(node);
    await quiet(other);
    await Promise.all(agents.map(([id, at]) => moveTo(id, at === node ? other : node, true)));
    const moved = (at: string): string[] => agents.filter(([, from]) => from !== at).map(([id]) => id);
    expect(await world.desired(node)).toEqual(moved(node));
    expect(await world.desired(other)).toEqual(moved(other));
  });

  describe("a start is refused", () => {
    test("while secrets are missing, and all of them are named", async () => {
      const config = { secrets: { OWN: { as: "file" } }, registryAuthSecret: "LOGIN" } as const;
      const { id } = await world.create(node, { connectorSlugs: ["slack"], config });
      await world.agentSecrets.put(OWNER, id, { name: "SLACK_APP_TOKEN", value: "xapp-1" });
      const missingSecrets = [
        { name: "OWN", connectorSlug: null, stale: false },
        { name: "SLACK_BOT_TOKEN", connectorSlug: "slack", stale: false },
        { name: "LOGIN", connectorSlug: null, stale: false },
      ];
      const refused = world.agentLife.start(OWNER, id);
      await expect(refused).rejects.toMatchObject({ code: "missing_secrets", missingSecrets });
      await expect(refused).rejects.toThrow(
        "Set these secrets of the agent first: OWN; SLACK_BOT_TOKEN (connector slack); LOGIN.",
      );
      expect(await stateOf(id)).toBe("created");
    });

    test("on a node without a daemon", async () => {
      const bare = await world.nodes.create("Bare", null);
      const { id } = await world.create(bare.id);
      await expect(world.agentLife.start(OWNER, id)).rejects.toMatchObject({ code: "node_not_enrolled" });
    });

    test("for users who may only read, and strangers get not found", async () => {
      const { id } = await world.create(node);
      for (const call of [
        () => world.agentLife.start(VIEWER, id),
        () => world.agentLife.stop(VIEWER, id),
        () => world.agentLife.delete(VIEWER, id, true),
        () => world.agentChanging.update(VIEWER, id, { name: "x", force: false }),
      ])
        await expect(call()).rejects.toMatchObject({ code: "permission_denied" });
      await expect(world.agentLife.start(STRANGER, id)).rejects.toMatchObject({
        code: "not_found",
        message: "There is no such agent in your projects.",
      });
    });
  });
});
