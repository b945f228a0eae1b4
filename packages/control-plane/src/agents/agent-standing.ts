import type { KeyLimits } from "@fairlead/protocol/resources";
import { isLive } from "./agent.ts";
import type { AgentStore } from "./agent-store.ts";

/** How an agent stands: what its credentials and its calls are judged by. */
export interface AgentStanding {
  readonly projectId: string;
  /** Where it is placed; null: nowhere. */
  readonly nodeId: string | null;
  readonly run: number;
  /** Whether this run is to go on. */
  readonly live: boolean;
  readonly limits: KeyLimits;
}

export class AgentStandings {
  readonly #agents: Pick<AgentStore, "find">;

  constructor(agents: Pick<AgentStore, "find">) {
    this.#agents = agents;
  }

  /** Null: there is no such agent. */
  async find(agentId: string): Promise<AgentStanding | null> {
    const agent = await this.#agents.find(agentId);
    if (agent === null) return null;
    const { projectId, placement, run, limits } = agent;
    return { projectId, nodeId: placement?.nodeId ?? null, run, live: isLive(agent), limits };
  }
}
