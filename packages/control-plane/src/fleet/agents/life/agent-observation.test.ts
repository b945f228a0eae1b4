import type { WorkloadReport } from "@fairlead/protocol/workload";
import { describe, expect, test } from "vitest";
import type { AgentHostFacts } from "../../nodes/agents/agent-hosts.ts";
import { agentReport } from "../../nodes/desired/agents-on-node.fixture.ts";
import { type AgentRecord, NOTHING_OBSERVED } from "../definition/agent.ts";
import { hostFacts } from "../definition/host-facts.fixture.ts";
import { observeAgent } from "./agent-observation.ts";
import { placedAgent } from "./placed-agent.fixture.ts";

const lastExit = { code: 137, reason: "out of memory", at: "2026-01-01T00:00:00.000Z" };
const agent = placedAgent({
  id: "agt_1",
  projectId: "prj_1",
  nodeId: "nod_1",
  placement: { nodeId: "nod_1", since: 3, releasedAt: null },
  observed: { ...NOTHING_OBSERVED, image: "old", lastExit, message: "before" },
});

const reporting = (changes: Partial<WorkloadReport> = {}, facts: Partial<AgentHostFacts> = {}): AgentHostFacts =>
  hostFacts({ report: { generation: 3, reports: [agentReport("agt_1", 3, changes)] }, ...facts });
const silent = (facts: Partial<AgentHostFacts> = {}): AgentHostFacts =>
  hostFacts({ report: { generation: 3, reports: [] }, ...facts });
const told = (of: AgentRecord, host: AgentHostFacts | null): [string | null, string] => {
  const { event, observed } = observeAgent(of, host);
  return [event, observed.message];
};

describe("an agent on a node that responds", () => {
  test("has the state that the node reports", () => {
    const { event, observed } = observeAgent(agent, reporting({ restartCount: 2, lastExit }));
    expect(event).toBe("reported_ready");
    expect(observed).toEqual({
      image: "fairlead/demo-agent:1",
      imageDigest: `sha256:${"1".repeat(64)}`,
      startedAt: "2026-01-01T00:00:00.000Z",
      restartCount: 2,
      lastExit,
      message: "Ready.",
    });
  });

  test.each([
    [{ state: "pulling", ready: false, progress: 40 }, "reported_not_ready", "Pulling its image: 40 %."],
    [{ state: "pulling", ready: false }, "reported_not_ready", "Pulling its image."],
    [
      { state: "pending", ready: false, message: "the secret TOKEN is not set" },
      "reported_not_ready",
      "the secret TOKEN is not set",
    ],
    [{ state: "backing-off", ready: false }, "reported_not_ready", "Exited; waiting to restart."],
    [{ state: "failed", ready: false, message: "no such image" }, "reported_failed", "no such image"],
    [{ ready: true, message: "rolled back: not ready in time" }, "reported_ready", "rolled back: not ready in time"],
  ] as const)("turns the report %o into the event %s", (report, event, message) => {
    expect(told(agent, reporting(report))).toEqual([event, message]);
  });

  test("waits while its node has not started its run, whatever was reported of the previous one", () => {
    const expected = ["reported_not_ready", "Waiting for node Rack 1 to start it."];
    expect(told(agent, silent())).toEqual(expected);
    expect(told(agent, hostFacts())).toEqual(expected);
    const later = { ...agent, placement: { nodeId: "nod_1", since: 4, releasedAt: null } };
    expect(told(later, reporting({ state: "failed", ready: false }))).toEqual(expected);
  });

  test("keeps its last exit when nothing of it runs", () => {
    expect(observeAgent(agent, silent()).observed).toMatchObject({ image: "", lastExit });
  });
});

describe("an agent on a node that does not respond", () => {
  const quiet = reporting({}, { status: "unreachable" });
  const since = "Node Rack 1 has not responded since 2026-01-01T00:00:00.000Z. The agent may still be running there.";

  test("may still be running there, so its last observed state is kept", () => {
    const { event, observed } = observeAgent(agent, quiet);
    expect(event).toBe("node_went_quiet");
    expect(observed).toEqual({ ...agent.observed, message: since });
  });

  test("says what it waits for if it is leaving the node", () => {
    const released = { ...agent, placement: { nodeId: "nod_1", since: 3, releasedAt: 4 } };
    expect(told({ ...released, nodeId: "nod_2" }, quiet)).toEqual([
      null,
      `${since} It is started again once that node reports it gone.`,
    ]);
    expect(told({ ...released, wanted: false }, quiet)).toEqual([null, since]);
  });
});

describe("an agent on a node out of service", () => {
  const message = (status: string): string =>
    `Node Rack 1 is ${status}. The agent starts again when the node is resumed.`;

  test("is stopping while the node still has it, and stopped once the node does not", () => {
    expect(told(agent, reporting({}, { status: "draining" }))).toEqual(["node_drained", message("draining")]);
    const stopping: AgentRecord = { ...agent, lifecycleState: "stopping" };
    expect(told(stopping, silent({ status: "draining" }))).toEqual(["reported_gone", message("draining")]);
  });

  test.each(["starting", "running", "failed"] as const)("goes from %s to stopping first", (lifecycleState) => {
    expect(told({ ...agent, lifecycleState }, silent({ status: "drained" }))).toEqual([
      "node_drained",
      message("drained"),
    ]);
  });
});

describe("an agent that is leaving its node, or has none", () => {
  test("keeps its last observed state until the node reports it gone", () => {
    const released = { ...agent, placement: { nodeId: "nod_1", since: 3, releasedAt: 4 } };
    const { event, observed } = observeAgent(released, reporting());
    expect(event).toBeNull();
    expect(observed).toEqual({ ...agent.observed, message: "Waiting for node Rack 1 to stop it." });
  });

  test("has failed if it is wanted and its node was deleted", () => {
    const message = "Its node was deleted. Set another node as `runtimeProvider`.";
    expect(told({ ...agent, placement: null }, null)).toEqual(["node_deleted", message]);
  });

  test("is stopped or not started if it is not wanted", () => {
    const unwanted = { ...agent, placement: null, wanted: false };
    expect(told({ ...unwanted, lifecycleState: "stopping" }, hostFacts())).toEqual(["reported_gone", "Stopped."]);
    expect(told({ ...unwanted, lifecycleState: "created" }, hostFacts())).toEqual([null, "Not started."]);
    expect(told({ ...unwanted, lifecycleState: "created" }, null)).toEqual([null, "Its node was deleted."]);
  });
});
