import type { WorkloadSpec } from "@fairlead/protocol/workload";
import type { Kysely } from "kysely";
import type { Database } from "../../../installation/db/tables/schema.ts";
import type { AgentsOnNode } from "../../nodes/desired/agents-on-node.ts";
import { type AgentRecord, isLive } from "../definition/agent.ts";
import { agentSpec, type SpecFacts } from "../definition/agent-spec.ts";
import type { ConnectorCatalogue } from "../definition/connectors.ts";
import { agentStores } from "../records/agent-stores.ts";

export interface AgentPlannerDeps {
  readonly connectors: Pick<ConnectorCatalogue, "known">;
  readonly secrets: { held(transaction: Kysely<Database>, agentId: string): Promise<SpecFacts["held"]> };
  readonly modelsUrl: string;
}

/** Plans the agents of each node. */
export class AgentPlanner implements AgentsOnNode {
  readonly #deps: AgentPlannerDeps;

  constructor(deps: AgentPlannerDeps) {
    this.#deps = deps;
  }

  async plannedOn(transaction: Kysely<Database>, nodeId: string): Promise<readonly WorkloadSpec[]> {
    const { connectors, secrets, modelsUrl } = this.#deps;
    const specs: WorkloadSpec[] = [];
    for (const agent of await livingOn(transaction, nodeId)) {
      const held = await secrets.held(transaction, agent.id);
      specs.push(agentSpec(agent, { connectors: connectors.known(agent.connectorSlugs), held, modelsUrl }));
    }
    return specs;
  }

  async connectorsOn(transaction: Kysely<Database>, nodeId: string): Promise<readonly string[]> {
    const agents = await livingOn(transaction, nodeId);
    return [...new Set(agents.flatMap(({ connectorSlugs }) => connectorSlugs))].toSorted();
  }
}

async function livingOn(transaction: Kysely<Database>, nodeId: string): Promise<AgentRecord[]> {
  const placed = await agentStores(transaction).agents.placedOn(nodeId);
  return placed.filter((agent) => isLive(agent) && agent.nodeId === nodeId);
}
