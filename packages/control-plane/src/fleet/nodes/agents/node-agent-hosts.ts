import type { Kysely } from "kysely";
import type { Database } from "../../../installation/db/tables/schema.ts";
import type { NodePlanner } from "../desired/node-planner.ts";
import type { NodeChangeFeed } from "../node-change-feed.ts";
import { type NodeStores, nodeStores } from "../records/node-stores.ts";
import type { AgentHostFacts, AgentHosts, Replanned } from "./agent-hosts.ts";

export interface NodeAgentHostsDeps {
  readonly stores: NodeStores;
  readonly planner: NodePlanner;
  readonly changes: NodeChangeFeed;
  readonly epoch: string;
}

/** Nodes as the room of agents sees them. */
export class NodeAgentHosts implements AgentHosts {
  readonly #deps: NodeAgentHostsDeps;

  constructor(deps: NodeAgentHostsDeps) {
    this.#deps = deps;
  }

  async replanWithin(transaction: Kysely<Database>, nodeId: string): Promise<Replanned | null> {
    const stores = nodeStores(transaction);
    const node = await stores.nodes.findForUpdate(nodeId);
    return node && this.#deps.planner.replan({ stores, transaction }, node);
  }

  announce(nodeId: string, projectId: string): void {
    this.#deps.changes.emit({ nodeId, projectId, aspect: "desired" });
  }

  async facts(nodeId: string): Promise<AgentHostFacts | null> {
    const { stores, epoch } = this.#deps;
    // The report first: what it says is never held against a plan that is older than it.
    const report = await stores.reports.report(nodeId);
    const desired = await stores.reports.desired(nodeId);
    const node = await stores.nodes.find(nodeId);
    if (node === null || desired === null) return null;
    const { projectId, name, status, statusSince, directSecrets, sealingKey } = node;
    return {
      nodeId,
      projectId,
      name,
      status,
      statusSince,
      generation: desired.generation,
      // What was said before the store was restored is of another count of generations.
      report: report?.epoch === epoch ? { generation: report.generation, reports: report.reports } : null,
      directSecrets,
      sealingKey,
    };
  }
}
