import type { Connector } from "@fairlead/protocol/agents";
import type { WorkloadSpec } from "@fairlead/protocol/workload";
import type { Kysely } from "kysely";
import type { Database } from "../db/schema.ts";
import type { AgentsOnNode } from "../nodes/agents-on-node.ts";
import { type AgentRecord, isLive } from "./agent.ts";
import type { Connectors } from "./agent-inputs.ts";
import { agentSpec, type SpecFacts } from "./agent-spec.ts";
import { agentStores } from "./agent-stores.ts";

export interface AgentPlannerDeps {
  readonly connectors: Connectors;
  readonly secrets: { held(transaction: Kysely<Database>, agentId: string): Promise<SpecFacts["held"]> };
  readonly modelsUrl: string;
}

/** Tells nodes which agents they shall run. */
export class AgentPlanner implements AgentsOnNode {
  readonly #deps: AgentPlannerDeps;

  constructor(deps: AgentPlannerDeps) {
    this.#deps = deps;
  }

  async plannedOn(transaction: Kysely<Database>, nodeId: string): Promise<readonly WorkloadSpec[]> {
    const { secrets, modelsUrl } = this.#deps;
    const specs: WorkloadSpec[] = [];
    for (const agent of await livingOn(transaction, nodeId)) {
      const held = await secrets.held(transaction, agent.id);
      specs.push(agentSpec(agent, { connectors: this.#connectorsOf(agent), held, modelsUrl }));
    }
    return specs;
  }

  async connectorsOn(transaction: Kysely<Database>, nodeId: string): Promise<readonly string[]> {
    const agents = await livingOn(transaction, nodeId);
    return [...new Set(agents.flatMap(({ connectorSlugs }) => connectorSlugs))].toSorted();
  }

  /** One that the catalogue no longer has asks for nothing. */
  #connectorsOf({ connectorSlugs }: AgentRecord): Connector[] {
    return connectorSlugs.flatMap((slug) => this.#deps.connectors.find(slug) ?? []);
  }
}

async function livingOn(transaction: Kysely<Database>, nodeId: string): Promise<AgentRecord[]> {
  const placed = await agentStores(transaction).agents.placedOn(nodeId);
  return placed.filter((agent) => isLive(agent) && agent.nodeId === nodeId);
}
