import type { ReportedNodeEvent } from "@fairlead/protocol/daemon-link";
import type { WorkloadSpec } from "@fairlead/protocol/workload";
import type { Kysely } from "kysely";
import type { Database } from "../../../installation/db/tables/schema.ts";

/** Which agents a node should run; implemented by the agents' room. Called in the transaction that locks the node's row; reads only. */
export interface AgentsOnNode {
  /** Workloads of the agents, by ID. */
  plannedOn(transaction: Kysely<Database>, nodeId: string): Promise<readonly WorkloadSpec[]>;
  /** Connectors that the agents use, by slug, without duplicates. */
  connectorsOn(transaction: Kysely<Database>, nodeId: string): Promise<readonly string[]>;
}

/** Stores agents' histories; implemented by the agents' room. */
export interface AgentHistories {
  /** Stores a daemon's events about agents placed on its node, each once. */
  take(nodeId: string, events: readonly ReportedNodeEvent[]): Promise<void>;
}
