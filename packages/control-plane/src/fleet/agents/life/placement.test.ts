import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { AgentHostFacts } from "../../nodes/agents/agent-hosts.ts";
import { agentReport } from "../../nodes/desired/agents-on-node.fixture.ts";
import type { AgentRecord } from "../definition/agent.ts";
import { hostFacts } from "../definition/host-facts.fixture.ts";
import { placedAgent } from "./placed-agent.fixture.ts";
import { type PlacementFacts, placementStep } from "./placement.ts";

const here = hostFacts();
const there = hostFacts({ nodeId: "nod_2", name: "Rack 2" });
const agent = placedAgent({ id: "agt_1", projectId: "prj_1", nodeId: "nod_1" });
const released = { ...agent, placement: { nodeId: "nod_1", since: 1, releasedAt: 5 } };

const step = (of: AgentRecord, facts: Partial<PlacementFacts> = {}): string | null =>
  placementStep(of, { placedOn: here, target: here, force: false, ...facts });
const reporting = (generation: number, ids: readonly string[] = []): AgentHostFacts =>
  hostFacts({ report: { generation, reports: ids.map((id) => agentReport(id, generation)) } });

describe("an agent that is not placed", () => {
  const nowhere: AgentRecord = { ...agent, placement: null };

  test("is placed on its node when it is wanted, and is not placed when it is not", () => {
    expect(step(nowhere, { placedOn: null })).toBe("place");
    expect(step({ ...nowhere, wanted: false }, { placedOn: null })).toBeNull();
  });

  test.each([
    ["was deleted", null],
    ["is being deleted", hostFacts({ status: "deleting" })],
  ])("is not placed on a node that %s", (_, target) => {
    expect(step(nowhere, { placedOn: null, target })).toBeNull();
  });

  test("is removed when it is being deleted, wanted or not", () => {
    for (const wanted of [true, false])
      expect(step({ ...nowhere, wanted, lifecycleState: "deleting" }, { placedOn: null })).toBe("forget");
  });
});

describe("a placed agent", () => {
  test("stays while it is wanted there, whatever the node's status", () => {
    for (const status of ["active", "degraded", "unreachable", "draining", "drained", "starting"] as const)
      expect(step(agent, { placedOn: hostFacts({ status }) })).toBeNull();
  });

  test.each([
    ["is not wanted", { ...agent, wanted: false }],
    ["is to run elsewhere", { ...agent, nodeId: "nod_2" }],
    ["is being deleted", { ...agent, lifecycleState: "deleting" }],
  ] as const)("is released from its node when it %s", (_, of) => {
    expect(step(of, { target: there })).toBe("release");
  });

  test("leaves a node that was deleted or is being deleted", () => {
    expect(step(agent, { placedOn: null })).toBe("leave");
    expect(step(released, { placedOn: hostFacts({ status: "deleting" }) })).toBe("leave");
  });
});

describe("an agent that was released from its node", () => {
  test("leaves once the node reports, for that generation or a later one, without it", () => {
    expect(step(released, { placedOn: reporting(5) })).toBe("leave");
    expect(step(released, { placedOn: reporting(9, ["agt_2"]) })).toBe("leave");
  });

  test.each([
    ["nothing yet", here],
    ["an older generation", reporting(4)],
    ["that it is still running", reporting(5, ["agt_1"])],
  ])("waits while the node reports %s", (_, placedOn) => {
    expect(step(released, { placedOn })).toBeNull();
    expect(step({ ...released, nodeId: "nod_2" }, { placedOn, target: there })).toBeNull();
  });

  test("leaves an unreachable node when forced, but not a reachable one", () => {
    const quiet = hostFacts({ status: "unreachable" });
    expect(step(released, { placedOn: quiet })).toBeNull();
    expect(step(released, { placedOn: quiet, force: true })).toBe("leave");
    expect(step(released, { placedOn: reporting(4), force: true })).toBeNull();
  });
});

test("without force, an agent is never placed again before its former node reported it gone or was deleted", () => {
  const generation = fc.integer({ min: 0, max: 10 });
  const host = fc.record({
    status: fc.constantFrom("active", "unreachable", "drained", "draining", "starting"),
    report: fc.option(fc.record({ generation, runs: fc.boolean() })),
  });
  const placed = fc.record({ wanted: fc.boolean(), moves: fc.boolean(), releasedAt: generation, host });
  fc.assert(
    fc.property(placed, ({ wanted, moves, releasedAt, host: { status, report } }) => {
      const placedOn = hostFacts({
        status,
        report: report && reporting(report.generation, report.runs ? ["agt_1"] : []).report,
      });
      const of = { ...agent, wanted, nodeId: moves ? "nod_2" : "nod_1" };
      const placement = { nodeId: "nod_1", since: 1, releasedAt };
      const next = step({ ...of, placement }, { placedOn, target: there });
      const isGone = report !== null && report.generation >= releasedAt && !report.runs;
      expect(next).toBe(isGone ? "leave" : null);
    }),
  );
});
