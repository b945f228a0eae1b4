import type { Agent, AgentEvent } from "@fairlead/protocol/agents";

/** An agent in a response of the platform host. */

export const NODE_IDS = { attic: `nod_${"a".repeat(26)}`, cellar: `nod_${"c".repeat(26)}` } as const;

export const AGENT: Agent = {
  id: "agt_1",
  projectId: "prj_1",
  name: "Bot",
  lifecycleState: "running",
  guest: "fairlead-demo-agent",
  runtimeProvider: `node:${NODE_IDS.attic}`,
  connectorSlugs: ["http"],
  runtime: {
    nodeId: NODE_IDS.attic,
    image: "fairlead/demo-agent:1",
    imageDigest: `sha256:${"b".repeat(64)}`,
    startedAt: "2030-01-01T00:00:01.000Z",
    restartCount: 0,
    lastExit: null,
    message: "Ready.",
  },
  createdAt: "2030-01-01T00:00:00.000Z",
  updatedAt: "2030-01-01T00:00:00.000Z",
};

/** Runtime of an agent that is not running. */
export const NO_RUNTIME: Agent["runtime"] = {
  nodeId: "",
  image: "",
  imageDigest: "",
  startedAt: null,
  restartCount: 0,
  lastExit: null,
  message: "Stopped.",
};

export function agentEvent(event: Pick<AgentEvent, "id" | "kind" | "message"> & Partial<AgentEvent>): AgentEvent {
  return { at: "2030-01-01T00:00:00.000Z", lifecycleState: null, ...event };
}
