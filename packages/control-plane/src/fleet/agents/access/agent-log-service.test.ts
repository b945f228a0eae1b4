import { text } from "node:stream/consumers";
import { LOGS_WORKLOAD, TUNNEL_FAULT_HEADER } from "@fairlead/protocol/daemon-link";
import { DomainError } from "@fairlead/protocol/errors";
import { systemClock } from "@fairlead/protocol/values/clock";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { UserPrincipal } from "../../../access/auth/principal.ts";
import { BoundCounters } from "../../../telemetry/bounds/bound-counters.ts";
import { WorkloadLogs } from "../../nodes/actions/workload-logs.ts";
import { type NodeFixture, nodeFixture, OWNER, PROJECT, VIEWER } from "../../nodes/node.fixture.ts";
import { FakeNodes } from "../../tunnel/testing/fake-node.ts";
import type { NodeRequest } from "../../tunnel/testing/node-request.ts";
import { TunnelHub } from "../../tunnel/tunnel-hub.ts";
import type { AgentRecord } from "../definition/agent.ts";
import { placedAgent } from "../life/placed-agent.fixture.ts";
import { AgentLogService } from "./agent-log-service.ts";

const AGENT = "agt_01kc3b6q2v8r5x0m7n4t9w1yzj";
const CALLER: UserPrincipal = { ...OWNER, sessionId: "ses_1" };
const ALL = { follow: false };
const FOLLOW = { follow: true };

let fixture: NodeFixture;
let hub: TunnelHub;
let daemons: FakeNodes;
let workloadLogs: WorkloadLogs;
let logs: AgentLogService;
let agent: AgentRecord | null;

beforeEach(async () => {
  fixture = await nodeFixture();
  hub = new TunnelHub({ log: pino({ level: "silent" }), clock: systemClock, bounds: new BoundCounters() });
  agent = placedAgent({ id: AGENT, projectId: PROJECT, nodeId: "nod_1" });
  const get = async (): Promise<AgentRecord> => {
    if (agent === null) throw new DomainError("not_found", "There is no such agent.");
    return agent;
  };
  const sessions = { find: () => ({ userId: OWNER.userId, platformAdmin: false }) };
  workloadLogs = new WorkloadLogs({ sessions, daemons: hub });
  const { access, audit } = fixture;
  logs = new AgentLogService({ db: fixture.store.db, agents: { get }, access, audit, workloadLogs });
});

afterEach(async () => {
  workloadLogs.close();
  hub.close();
  daemons.close();
  await fixture.close();
});

async function daemon(nodeId: string, answer: (request: NodeRequest) => void): Promise<void> {
  (await daemons.connect(nodeId)).onRequest = answer;
}

async function recorded(): Promise<unknown[]> {
  const rows = fixture.store.db.selectFrom("audit_event").select(["action", "resource_id"]);
  return (await rows.execute()).filter(({ action }) => action.startsWith("agent."));
}

describe("the logs of an agent", () => {
  beforeEach(async () => {
    daemons = new FakeNodes(hub);
    await daemons.listen();
  });

  it("are read on the node where the agent is placed, by workload name, and the read is recorded", async () => {
    agent = placedAgent({
      id: AGENT,
      projectId: PROJECT,
      nodeId: "nod_next",
      placement: { nodeId: "nod_1", since: 1, releasedAt: 2 },
    });
    let asked: NodeRequest | undefined;
    await daemon("nod_1", (request) => {
      asked = request;
      request.respond(200);
      request.end("one\n");
    });
    expect(await logs.open(CALLER, AGENT, { ...ALL, tail: 5 }).then(text)).toBe("one\n");
    expect(asked).toMatchObject({
      path: "/agent-01kc3b6q2v8r5x0m7n4t9w1yzj?follow=false&tail=5",
      workload: LOGS_WORKLOAD,
    });
    expect(await recorded()).toEqual([{ action: "agent.logs", resource_id: AGENT }]);
  });

  it("end within about a second once the caller may no longer access the agent", async () => {
    await daemon("nod_1", (request) => request.respond(200));
    const lines = await logs.open(CALLER, AGENT, FOLLOW);
    agent = null;
    await expect.poll(() => lines.destroyed, { timeout: 4000 }).toBe(true);
  });

  it("are refused with the reason: no permission, no daemon, no container", async () => {
    await expect(logs.open(VIEWER, AGENT, ALL)).rejects.toMatchObject({ code: "permission_denied" });
    await expect(logs.open(CALLER, AGENT, ALL)).rejects.toMatchObject({ code: "unavailable" });
    agent = placedAgent({ id: AGENT, projectId: PROJECT, nodeId: "nod_1", placement: null, lifecycleState: "stopped" });
    await daemon("nod_1", (request) => {
      request.respond(503, { [TUNNEL_FAULT_HEADER]: "no_running_engine" });
      request.end();
    });
    await expect(logs.open(CALLER, AGENT, ALL)).rejects.toMatchObject({
      code: "no_running_engine",
      message: "No container of this agent has logs to show. The agent is stopped.",
    });
    agent = null;
    await expect(logs.open(CALLER, AGENT, ALL)).rejects.toMatchObject({ code: "not_found" });
    expect(await recorded()).toEqual([]);
  });
});
