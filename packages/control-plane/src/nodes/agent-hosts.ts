import type { SealingPublicKey } from "@fairlead/protocol/enrollment";
import type { NodeStatus } from "@fairlead/protocol/resources";
import type { WorkloadReport } from "@fairlead/protocol/workload";
import type { Kysely } from "kysely";
import type { Database } from "../db/schema.ts";

/** A node as what runs agents. Times are Unix milliseconds. */
export interface HostFacts {
  readonly nodeId: string;
  readonly projectId: string;
  readonly name: string;
  readonly status: NodeStatus;
  readonly statusSince: number;
  /** Of its desired state now. */
  readonly generation: number;
  /** What its daemon last said in this epoch, of a generation that it acted on: what is not in it does not run there. Null: nothing yet. */
  readonly report: { readonly generation: number; readonly reports: readonly WorkloadReport[] } | null;
  /** False: its daemon is too old for agents. One that was never heard is taken for new. */
  readonly runsAgents: boolean;
  readonly directSecrets: boolean;
  /** Null: it has not enrolled. */
  readonly sealingKey: SealingPublicKey | null;
}

/** What a changed plan of a node leads to. */
export interface Replanned {
  /** Of the desired state that holds now. */
  readonly generation: number;
  /** Whether that is a new one. */
  readonly changed: boolean;
}

/** What the room of agents may ask of nodes. */
export interface AgentHosts {
  /** Inside the caller's transaction; locks the node's row and plans anew what it shall run. Null: no such node. */
  replanWithin(transaction: Kysely<Database>, nodeId: string): Promise<Replanned | null>;
  /** After the commit, where the plan changed: tells the node's daemon. */
  announce(nodeId: string, projectId: string): void;
  /** Null: there is no such node any more. */
  facts(nodeId: string): Promise<HostFacts | null>;
}
