import {
  type Agent,
  type AgentConfig,
  type AgentLifecycleState,
  type AgentRuntime,
  runtimeProviderOf,
} from "@fairlead/protocol/agents";
import { rfc3339 } from "@fairlead/protocol/clock";
import { DomainError } from "@fairlead/protocol/errors";
import { ID_PREFIXES } from "@fairlead/protocol/ids";
import type { KeyLimits } from "@fairlead/protocol/resources";
import type { AuditResource } from "../audit/audit.ts";

/** An agent as the services hold it. Times are Unix milliseconds. */
export interface AgentRecord {
  readonly id: string;
  readonly projectId: string;
  readonly userId: string;
  readonly name: string;
  readonly guest: string;
  /** Where it is to run: its `runtimeProvider`. */
  readonly nodeId: string;
  readonly connectorSlugs: readonly string[];
  readonly config: AgentConfig;
  readonly limits: KeyLimits;
  /** What people last asked for by `:start` and `:stop`. */
  readonly wanted: boolean;
  /** Grows with every start of it, a move included: what was issued for an earlier run is void. */
  readonly run: number;
  readonly placement: Placement | null;
  readonly lifecycleState: AgentLifecycleState;
  readonly lifecycleSince: number;
  readonly observed: Observed;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** On which node's desired state it stands, or stood until that node reports it gone. */
export interface Placement {
  readonly nodeId: string;
  /** The generation of that desired state which first had this run: what was reported of earlier ones is not of it. */
  readonly since: number;
  /** The generation that no longer has it; null while it is to run there. */
  readonly releasedAt: number | null;
}

/** What was last seen of it, and why it is in its state, for people. */
export type Observed = Omit<AgentRuntime, "nodeId">;

export const NOTHING_OBSERVED: Observed = {
  image: "",
  imageDigest: "",
  startedAt: null,
  restartCount: 0,
  lastExit: null,
  message: "",
};

/** Whether this run of it is to go on where it is placed: what was issued for it is good. */
export function isLive({ wanted, lifecycleState, placement }: AgentRecord): boolean {
  return wanted && lifecycleState !== "deleting" && placement !== null && placement.releasedAt === null;
}

/** What its workload is called on its node. */
export function workloadName(agentId: string): string {
  return `agent-${agentId.slice(ID_PREFIXES.agent.length + 1).toLowerCase()}`;
}

export function agentResource({ id, name }: Pick<AgentRecord, "id" | "name">): AuditResource {
  return { type: "agent", id, name };
}

export function agentNotFound(): DomainError {
  return new DomainError("not_found", "There is no such agent in your projects.");
}

export function agentDeleting(): DomainError {
  return new DomainError("agent_deleting", "The agent is being deleted: it goes once its node has reported it gone.");
}

export function toAgent(agent: AgentRecord): Agent {
  return {
    id: agent.id,
    projectId: agent.projectId,
    name: agent.name,
    lifecycleState: agent.lifecycleState,
    guest: agent.guest,
    runtimeProvider: runtimeProviderOf(agent.nodeId),
    connectorSlugs: [...agent.connectorSlugs],
    runtime: { nodeId: agent.placement?.nodeId ?? "", ...agent.observed },
    createdAt: rfc3339(agent.createdAt),
    updatedAt: rfc3339(agent.updatedAt),
  };
}
