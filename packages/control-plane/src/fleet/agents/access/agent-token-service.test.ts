import { NO_LIMITS } from "@fairlead/protocol/key-limits";
import { beforeEach, describe, expect, test } from "vitest";
import type { NodeIdentity } from "../../../access/auth/authenticate.ts";
import type { TokenService } from "../../../access/auth/tokens/tokens.ts";
import type { AgentIdentity } from "../../../access/auth/tokens/worker-token.ts";
import { AgentTokenService, WORKER_TOKEN_TTL_SECONDS } from "./agent-token-service.ts";

const RUNNING: AgentIdentity = { projectId: "prj_1", nodeId: "nod_1", run: 2, live: true, limits: NO_LIMITS };
const NODE: NodeIdentity = { projectId: "prj_1", signingKeyThumbprint: "thumb" };

type Issued = Parameters<TokenService["issueWorker"]>[0];

describe("a daemon that requests an agent's token", () => {
  let agent: AgentIdentity | null;
  let node: NodeIdentity | null;
  let issued: Issued[];
  const service = new AgentTokenService({
    tokens: {
      issueWorker: async (worker) => {
        issued.push(worker);
        return "a.b.c";
      },
    },
    agents: { find: (id) => (id === "agt_1" ? agent : null) },
    nodes: { find: (id) => (id === "nod_1" ? node : null) },
  });

  beforeEach(() => {
    agent = RUNNING;
    node = NODE;
    issued = [];
  });

  test("gets one for the agent's current run on its node, and the time until it expires", async () => {
    const expiresIn = WORKER_TOKEN_TTL_SECONDS;
    expect(await service.issue("nod_1", "agt_1")).toEqual({ state: "issued", token: "a.b.c", expiresIn });
    const named = { agentId: "agt_1", nodeId: "nod_1", projectId: "prj_1", run: 2 };
    expect(issued).toEqual([{ ...named, keyThumbprint: "thumb", ttlSeconds: expiresIn }]);
  });

  test.each([
    ["does not exist", { agent: null }],
    ["was stopped", { agent: { ...RUNNING, live: false } }],
    ["is placed nowhere", { agent: { ...RUNNING, nodeId: null } }],
    ["is placed on another node", { agent: { ...RUNNING, nodeId: "nod_2" } }],
    ["belongs to another project", { agent: { ...RUNNING, projectId: "prj_2" } }],
    ["has a node that was deleted", { node: null }],
    ["has a project that is being deleted", { node: { ...NODE, projectDeleting: true } }],
  ])("gets none when the agent %s", async (_, now) => {
    ({ agent, node } = { agent, node, ...now });
    expect(await service.issue("nod_1", "agt_1")).toEqual({ state: "none" });
    expect(issued).toEqual([]);
  });
});
