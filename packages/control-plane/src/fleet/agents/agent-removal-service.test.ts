import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { OWNER, PROJECT } from "../nodes/node.fixture.ts";
import { type AgentFixture, agentFixture } from "./definition/agent.fixture.ts";

describe("the agents of a project that is being deleted", () => {
  let world: AgentFixture;

  beforeEach(async () => {
    world = await agentFixture();
  });
  afterEach(() => world.close());

  test("are invalid and off their nodes immediately, and are removed with their nodes", async () => {
    const node = await world.node("Rack 1");
    const { id } = await world.running(node);
    const idle = await world.create(node);
    await world.agentRemoval.endAll(PROJECT, new AbortController().signal);
    expect(await world.find(idle.id)).toBeNull();
    expect(await world.find(id)).toMatchObject({ lifecycleState: "deleting" });
    expect(await world.standings.find(id)).toMatchObject({ live: false });
    expect(await world.desired(node)).toEqual([]);
    await world.agentRemoval.endAll(PROJECT, new AbortController().signal);
    await world.nodes.nodeChanges.delete(OWNER, node);
    await world.follow(node);
    expect(await world.find(id)).toBeNull();
  });

  test("are left for the next start if the server stops", async () => {
    const node = await world.node("Rack 1");
    const { id } = await world.running(node);
    const stop = AbortSignal.abort();
    await expect(world.agentRemoval.endAll(PROJECT, stop)).rejects.toThrow(stop.reason);
    expect(await world.find(id)).toMatchObject({ lifecycleState: "running" });
  });
});
