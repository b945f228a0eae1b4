import type { AgentConfig } from "@fairlead/protocol/agents";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { STORES } from "../../testing.fixture.ts";
import { OTHER_PROJECT, OWNER, PROJECT, STRANGER, VIEWER } from "../nodes/node.fixture.ts";
import type { UpdateAgent } from "./agent-update-service.ts";
import { type AgentFixture, agentFixture } from "./definition/agent.fixture.ts";
import type { AgentRecord } from "./definition/agent.ts";

describe.each(STORES)("changes to agents on $name", ({ open }) => {
  let world: AgentFixture;
  let node: string;

  beforeEach(async () => {
    world = await agentFixture(open);
    node = await world.node("Rack 1");
  });
  afterEach(() => world.close());

  const update = (id: string, change: Partial<UpdateAgent>): Promise<AgentRecord> =>
    world.agentChanging.update(OWNER, id, { force: false, ...change });
  const generation = async (): Promise<number> => (await world.nodes.reports.desiredState(node)).generation;
  const envOf = async (): Promise<Record<string, string> | undefined> =>
    (await world.nodes.reports.desiredState(node)).workloads[0]?.env;

  test("a created agent is stored as given, without limits where none are set", async () => {
    const config: AgentConfig = { env: { TASK: "„<b>'; --" } };
    const limits = { parallelCalls: 2 };
    const { id } = await world.create(node, { name: "Nächtlich", connectorSlugs: ["slack", "slack"], config, limits });
    const agent = await world.agents.get(VIEWER, id);
    expect(agent).toMatchObject({ name: "Nächtlich", connectorSlugs: ["slack"], config, lifecycleState: "created" });
    expect(agent.limits).toMatchObject({ parallelCalls: 2, tokensPerMinute: null });
    expect(await world.agents.list(VIEWER, PROJECT, { limit: 9, after: null })).toEqual([agent]);
  });

  test("creating an agent requires permission, a node of the same project, and known connectors", async () => {
    const input = { projectId: PROJECT, name: "x", guest: "x", connectorSlugs: [], config: {}, limits: {} };
    const runtimeProvider = `node:${node}`;
    await expect(world.agents.create(VIEWER, { ...input, runtimeProvider })).rejects.toMatchObject({
      code: "permission_denied",
    });
    await expect(world.agents.create(STRANGER, { ...input, runtimeProvider })).rejects.toMatchObject({
      code: "not_found",
    });
    const elsewhere = { ...input, projectId: OTHER_PROJECT, runtimeProvider };
    await expect(world.agents.create(STRANGER, elsewhere)).rejects.toMatchObject({ param: "runtimeProvider" });
    await expect(world.create(node, { connectorSlugs: ["slack", "fax"] })).rejects.toMatchObject({
      code: "invalid_request",
      param: "connectorSlugs[1]",
    });
    expect(await world.agents.list(OWNER, PROJECT, { limit: 9, after: null })).toEqual([]);
  });

  test("a stranger cannot find an agent, its history or the list", async () => {
    const { id } = await world.create(node);
    const notFound = { code: "not_found" };
    await expect(world.agents.get(STRANGER, id)).rejects.toMatchObject(notFound);
    await expect(world.agents.events(STRANGER, id, { limit: 1, after: null })).rejects.toMatchObject(notFound);
    await expect(world.agents.list(STRANGER, PROJECT, { limit: 1, after: null })).rejects.toMatchObject(notFound);
    await expect(world.agentChanging.update(STRANGER, id, { force: false })).rejects.toMatchObject(notFound);
  });

  test("a change to a running agent makes a new generation of the desired state, and it keeps running", async () => {
    const { id } = await world.running(node);
    const before = await generation();
    world.nodes.clock.advance(1000);
    const changed = await update(id, { config: { env: { TASK: "Greet" } } });
    expect(changed).toMatchObject({ lifecycleState: "running", run: 1, updatedAt: world.nodes.clock.now() });
    expect(await generation()).toBe(before + 1);
    expect((await envOf())?.["TASK"]).toBe("Greet");
    const [newest] = await world.agents.events(OWNER, id, { limit: 1, after: null });
    const message = "usr_a@example.org changed config.";
    expect(newest).toMatchObject({ kind: "update_requested", lifecycleState: null, message });
  });

  test("a change without effect makes no event and no new generation; a new name makes no new generation", async () => {
    const { id } = await world.running(node);
    const before = await generation();
    const events = (await world.kinds(id)).length;
    await update(id, {});
    await update(id, { name: "Night shift", connectorSlugs: [], runtimeProvider: `node:${node}`, force: true });
    expect(await world.kinds(id)).toHaveLength(events);
    expect(await update(id, { name: "Day shift" })).toMatchObject({ name: "Day shift", lifecycleState: "running" });
    expect(await generation()).toBe(before);
  });

  test("a node's connectors are those that its agents use", async () => {
    const connectors = async () => (await world.nodes.nodes.get(OWNER, node)).connectors;
    const { id } = await world.running(node, { connectorSlugs: ["slack"] });
    await world.running(node, { connectorSlugs: ["http", "slack"] });
    expect(await connectors()).toEqual(["http", "slack"]);
    await update(id, { connectorSlugs: [] });
    expect(await connectors()).toEqual(["http", "slack"]);
    await world.agentLife.stop(OWNER, id);
    expect(await connectors()).toEqual(["http", "slack"]);
  });

  test("the history contains each event of the node's daemon once, and nothing from other nodes", async () => {
    const other = await world.node("Rack 2");
    const { id } = await world.running(node);
    const told = { id: "1", at: "", kind: "workload_exited", workloadId: id, message: "it ended with code 1" };
    const ofEngine = { ...told, id: "2", workloadId: `${node}-engine` };
    await world.nodes.reports.events(node, [told, ofEngine, { ...told, id: "3", workloadId: null }]);
    await world.nodes.reports.events(node, [told]);
    await world.nodes.reports.events(other, [told]);
    const events = await world.agents.events(OWNER, id, { limit: 9, after: null, kinds: ["workload_exited"] });
    expect(events).toMatchObject([{ agentId: id, lifecycleState: null, message: "it ended with code 1" }]);
  });

  test("a stopped agent moves without starting; a running one moves only to a node where it can run", async () => {
    const bare = (await world.nodes.create("Bare", null)).id;
    const idle = await world.create(node);
    const moved = await update(idle.id, { runtimeProvider: `node:${bare}` });
    expect(moved).toMatchObject({ nodeId: bare, lifecycleState: "created", placement: null });
    const { id } = await world.running(node);
    await expect(update(id, { runtimeProvider: `node:${bare}` })).rejects.toMatchObject({ code: "node_not_enrolled" });
    expect(await world.find(id)).toMatchObject({ nodeId: node, lifecycleState: "running" });
    await expect(update(id, { connectorSlugs: ["fax"] })).rejects.toMatchObject({ param: "connectorSlugs[0]" });
  });
});
