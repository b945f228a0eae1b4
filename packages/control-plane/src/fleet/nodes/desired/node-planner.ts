import { isDeepStrictEqual } from "node:util";
import type { Kysely } from "kysely";
import type { Database } from "../../../installation/db/tables/schema.ts";
import type { SecretService } from "../../secrets/secret-service.ts";
import type { Replanned } from "../agents/agent-hosts.ts";
import type { NodeRecord } from "../node.ts";
import type { NodeStores } from "../records/node-stores.ts";
import type { AgentsOnNode } from "./agents-on-node.ts";
import { planWorkloads } from "./plan-desired.ts";

export interface NodePlannerDeps {
  readonly secrets: Pick<SecretService, "held">;
  readonly agents: AgentsOnNode;
}

/** The transaction that holds the node's row. */
interface Within {
  readonly stores: NodeStores;
  readonly transaction: Kysely<Database>;
}

/** What a node shall run: its engine, and the agents that are placed on it. */
export class NodePlanner {
  readonly #deps: NodePlannerDeps;

  constructor(deps: NodePlannerDeps) {
    this.#deps = deps;
  }

  /** Brings the desired state up to the node's config, secrets and agents: a new generation where that changes anything. */
  async replan({ stores, transaction }: Within, node: NodeRecord): Promise<Replanned> {
    const { secrets, agents } = this.#deps;
    const held = await secrets.held(transaction, node.id);
    const engine = planWorkloads(node.id, node.engineConfig, { held, restarts: node.restarts });
    const planned = [...engine, ...(await agents.plannedOn(transaction, node.id))];
    await this.#keepConnectors({ stores, transaction }, node);
    const current = await stores.reports.desired(node.id);
    // As it would be read back: absent members and undefined ones are the same.
    if (current !== null && isDeepStrictEqual(current.workloads, JSON.parse(JSON.stringify(planned)))) {
      return { generation: current.generation, changed: false };
    }
    await stores.reports.setDesired(node.id, planned);
    return { generation: (current?.generation ?? 0) + 1, changed: true };
  }

  /** The slugs that the node's agents use. */
  async #keepConnectors({ stores, transaction }: Within, node: NodeRecord): Promise<void> {
    const connectors = await this.#deps.agents.connectorsOn(transaction, node.id);
    if (!isDeepStrictEqual(connectors, node.connectors)) await stores.nodes.setConnectors(node.id, connectors);
  }
}
