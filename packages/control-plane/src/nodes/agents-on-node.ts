import type { WorkloadSpec } from "@fairlead/protocol/workload";
import type { Kysely } from "kysely";
import type { Database } from "../db/schema.ts";

/** Which agents a node shall run; the room of agents. Asked inside the transaction that holds the node's row; reads only. */
export interface AgentsOnNode {
  /** Their workloads, by id. */
  plannedOn(transaction: Kysely<Database>, nodeId: string): Promise<readonly WorkloadSpec[]>;
  /** The connectors that they use, by slug, each once. */
  connectorsOn(transaction: Kysely<Database>, nodeId: string): Promise<readonly string[]>;
}
