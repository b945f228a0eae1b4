import { NO_LIMITS } from "@fairlead/protocol/key-limits";
import { type AgentRecord, NOTHING_OBSERVED } from "../definition/agent.ts";

type Placed = Partial<AgentRecord> & Pick<AgentRecord, "id" | "projectId" | "nodeId">;

/** An agent that is to run, and stands in its node's desired state. */
export function placedAgent(agent: Placed): AgentRecord {
  return {
    userId: "usr_1",
    name: agent.id,
    guest: "registry.example.org/guest:1",
    connectorSlugs: [],
    config: {},
    limits: NO_LIMITS,
    wanted: true,
    run: 1,
    placement: { nodeId: agent.nodeId, since: 1, releasedAt: null },
    lifecycleState: "running",
    lifecycleSince: 0,
    observed: NOTHING_OBSERVED,
    createdAt: 0,
    updatedAt: 0,
    ...agent,
  };
}
