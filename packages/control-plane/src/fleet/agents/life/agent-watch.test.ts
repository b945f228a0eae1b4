import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { OWNER } from "../../nodes/node.fixture.ts";
import { type AgentFixture, agentFixture } from "../definition/agent.fixture.ts";
import { startAgentWatch } from "./agent-watch.ts";

const log = pino({ level: "silent" });

describe("the agent watch", () => {
  let world: AgentFixture;
  let node: string;
  let stop: () => Promise<void>;

  beforeEach(async () => {
    world = await agentFixture();
    node = await world.node("Rack 1");
    stop = async () => undefined;
  });
  afterEach(async () => {
    await stop();
    await world.close();
  });

  const start = (): void => {
    stop = startAgentWatch({ stores: world.stores, courses: world.agentTransitions, nodes: world.nodes.changes, log });
  };
  const becomes = (id: string, lifecycleState: string): Promise<void> =>
    vi.waitFor(async () => expect(await world.find(id)).toMatchObject({ lifecycleState }));
  /** Told over the link alone: nobody asks agents to follow. */
  const says = async (agents: readonly string[]): Promise<void> => {
    const { generation, epoch } = await world.nodes.reports.desiredState(node);
    const workloadReports = agents.map((workloadId) => ({
      workloadId,
      workloadType: "WORKLOAD_TYPE_AGENT" as const,
      ready: true,
      state: "running" as const,
      version: "",
      image: "",
      imageDigest: "",
      generation,
      models: [],
      startedAt: null,
      restartCount: 0,
      lastExit: null,
      message: "",
    }));
    await world.nodes.reports.observe(node, { epoch, generation, workloadReports });
  };

  test("updates agents after every report, and when a node is deleted", async () => {
    start();
    const { id } = await world.create(node);
    await world.agentLife.start(OWNER, id);
    await says([id]);
    await becomes(id, "running");
    await world.agentLife.stop(OWNER, id);
    await says([]);
    await becomes(id, "stopped");
    await world.agentLife.start(OWNER, id);
    await world.nodes.nodeChanges.delete(OWNER, node);
    await becomes(id, "failed");
  });

  test("processes reports from before its start", async () => {
    const { id } = await world.running(node);
    await world.agentLife.stop(OWNER, id);
    await says([]);
    start();
    await becomes(id, "stopped");
  });

  test("continues after a failed check", async () => {
    const { id } = await world.running(node);
    const look = vi.spyOn(world.agentTransitions, "look").mockRejectedValueOnce(new Error("the store is away"));
    start();
    await vi.waitFor(() => expect(look).toHaveBeenCalled());
    await world.agentLife.stop(OWNER, id);
    await says([]);
    await becomes(id, "stopped");
  });

  test("writes nothing when nothing has changed", async () => {
    const { id } = await world.running(node);
    const told = world.told.length;
    await world.agentTransitions.look(id);
    await world.agentTransitions.look(id);
    await world.agentTransitions.look("agt_nobody");
    expect(world.told).toHaveLength(told);
  });
});
