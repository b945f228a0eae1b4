import type { NodeEvent } from "@fairlead/protocol/daemon-link";
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

/** Where agents' own histories are kept; the room of agents. */
export interface AgentHistories {
  /** Keeps what a node's daemon tells of agents that are placed there, each once. */
  take(nodeId: string, events: readonly NodeEvent[]): Promise<void>;
}
