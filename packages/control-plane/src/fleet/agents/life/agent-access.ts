import type { KeyLimits } from "@fairlead/protocol/resources";
import { isLive } from "../definition/agent.ts";
import type { AgentStore } from "../records/agent-store.ts";

/** The state that an agent's credentials and calls are checked against. */
export interface AgentAccess {
  readonly projectId: string;
  /** The node where it is placed; null: none. */
  readonly nodeId: string | null;
  readonly run: number;
  /** Whether this run should continue. */
  readonly live: boolean;
  readonly limits: KeyLimits;
}

export class AgentAccessLookup {
  readonly #agents: Pick<AgentStore, "find">;

  constructor(agents: Pick<AgentStore, "find">) {
    this.#agents = agents;
  }

  /** Null: no such agent. */
  async find(agentId: string): Promise<AgentAccess | null> {
    const agent = await this.#agents.find(agentId);
    if (agent === null) return null;
    const { projectId, placement, run, limits } = agent;
    return { projectId, nodeId: placement?.nodeId ?? null, run, live: isLive(agent), limits };
  }
}
