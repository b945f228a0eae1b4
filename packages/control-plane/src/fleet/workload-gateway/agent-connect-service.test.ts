import { DomainError } from "@fairlead/protocol/errors";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { UserPrincipal } from "../../access/auth/principal.ts";
import type { ConnectRequest } from "../../access/auth/tokens/connect-token.ts";
import type { AgentRecord } from "../agents/definition/agent.ts";
import { placedAgent } from "../agents/life/placed-agent.fixture.ts";
import { type NodeFixture, nodeFixture, OWNER, PROJECT, VIEWER } from "../nodes/node.fixture.ts";
import { AgentConnectService } from "./agent-connect-service.ts";

const AGENT = "agt_01kc3b6q2v8r5x0m7n4t9w1yzj";
const CALLER: UserPrincipal = { ...OWNER, sessionId: "ses_1" };

let fixture: NodeFixture;
let agent: AgentRecord | null;
let issued: ConnectRequest[];
let service: AgentConnectService;

beforeEach(async () => {
  fixture = await nodeFixture();
  agent = placedAgent({ id: AGENT, projectId: PROJECT, nodeId: "nod_1" });
  issued = [];
  const { access, audit, store } = fixture;
  service = new AgentConnectService({
    db: store.db,
    access,
    audit,
    agents: {
      get: async () => {
        if (agent === null) throw new DomainError("not_found", "There is no such agent.");
        return agent;
      },
    },
    connectTokens: {
      issue: async (request) => {
        issued.push(request);
        return "a.b.c";
      },
    },
    publicUrl: "https://fairlead.example.org",
  });
});

afterEach(() => fixture.close());

async function recorded(): Promise<string[]> {
  const rows = await fixture.store.db.selectFrom("audit_event").select("action").execute();
  return rows.map(({ action }) => action).filter((action) => action.startsWith("agent."));
}

describe("a connection to an agent", () => {
  it("leads to its workload on the node where it runs, ends with the session, and is recorded", async () => {
    agent = placedAgent({
      id: AGENT,
      projectId: PROJECT,
      nodeId: "nod_next",
      placement: { nodeId: "nod_1", since: 1, releasedAt: null },
    });
    expect(await service.connect(CALLER, AGENT)).toEqual({
      gatewayUrl: "https://fairlead.example.org/v1/nodes/nod_1/gateway",
      authToken: "a.b.c",
    });
    const holder = { userId: OWNER.userId, sessionId: "ses_1" };
    const workload = "agent-01kc3b6q2v8r5x0m7n4t9w1yzj";
    expect(issued).toEqual([{ nodeId: "nod_1", workload, projectId: PROJECT, holder }]);
    expect(await recorded()).toEqual(["agent.connect"]);
  });

  it.each(["created", "starting", "stopping", "stopped", "failed", "deleting"] as const)(
    "is refused while the agent is %s",
    async (lifecycleState) => {
      agent = placedAgent({ id: AGENT, projectId: PROJECT, nodeId: "nod_1", lifecycleState });
      await expect(service.connect(CALLER, AGENT)).rejects.toMatchObject({
        code: "no_running_engine",
        message: `This agent is not running; it is ${lifecycleState}.`,
      });
      expect(issued).toEqual([]);
    },
  );

  it("is refused to users without permission, and to callers without a session", async () => {
    await expect(service.connect({ ...VIEWER, sessionId: "ses_2" }, AGENT)).rejects.toMatchObject({
      code: "permission_denied",
    });
    await expect(service.connect(OWNER, AGENT)).rejects.toMatchObject({ code: "invalid_credential" });
    agent = null;
    await expect(service.connect(CALLER, AGENT)).rejects.toMatchObject({ code: "not_found" });
    expect([issued, await recorded()]).toEqual([[], []]);
  });
});
