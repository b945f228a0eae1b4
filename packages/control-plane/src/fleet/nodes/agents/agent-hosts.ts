import type { SealingPublicKey } from "@fairlead/protocol/enrollment";
import type { NodeStatus } from "@fairlead/protocol/resources";
import type { WorkloadReport } from "@fairlead/protocol/workload";
import type { Kysely } from "kysely";
import type { Database } from "../../../installation/db/tables/schema.ts";

/** A node as a host of agents. Times are Unix milliseconds. */
export interface AgentHostFacts {
  readonly nodeId: string;
  readonly projectId: string;
  readonly name: string;
  readonly status: NodeStatus;
  readonly statusSince: number;
  /** Generation of its current desired state. */
  readonly generation: number;
  /**
   * The daemon's last report in this epoch, about a generation that it applied: agents missing from it do not run
   * there. Null: none yet.
   */
  readonly report: { readonly generation: number; readonly reports: readonly WorkloadReport[] } | null;
  readonly directSecrets: boolean;
  /** Null: not enrolled. */
  readonly sealingKey: SealingPublicKey | null;
}

/** The result of planning a node again. */
export interface Replanned {
  /** Generation of the current desired state. */
  readonly generation: number;
  /** Whether that is a new one. */
  readonly changed: boolean;
}

/** What the agents' room needs of nodes. */
export interface AgentHosts {
  /** Locks the node's row in the caller's transaction and plans its workloads again. Null: no such node. */
  replanWithin(transaction: Kysely<Database>, nodeId: string): Promise<Replanned | null>;
  /** Call after the commit if the plan changed: notifies the node's daemon. */
  announce(nodeId: string, projectId: string): void;
  /** Null: no such node. */
  facts(nodeId: string): Promise<AgentHostFacts | null>;
}
