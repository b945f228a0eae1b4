import {
  type Agent,
  type AgentConfig,
  type AgentLifecycleState,
  type AgentRuntime,
  runtimeProviderOf,
} from "@fairlead/protocol/agents";
import { DomainError } from "@fairlead/protocol/errors";
import type { KeyLimits } from "@fairlead/protocol/resources";
import { rfc3339 } from "@fairlead/protocol/values/clock";
import { ID_PREFIXES } from "@fairlead/protocol/values/ids";
import type { AuditResource } from "../../../access/audit/audit.ts";

/** An agent as the services use it. Times are Unix milliseconds. */
export interface AgentRecord {
  readonly id: string;
  readonly projectId: string;
  readonly userId: string;
  readonly name: string;
  readonly guest: string;
  /** The configured node: `runtimeProvider`. */
  readonly nodeId: string;
  readonly connectorSlugs: readonly string[];
  readonly config: AgentConfig;
  readonly limits: KeyLimits;
  /** The last request by `:start` or `:stop`. */
  readonly wanted: boolean;
  /** Increases with every start and move. Tokens of earlier runs are invalid. */
  readonly run: number;
  readonly placement: Placement | null;
  readonly lifecycleState: AgentLifecycleState;
  readonly lifecycleSince: number;
  readonly observed: ObservedAgent;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** The node whose desired state contains it, until that node reports it gone. */
export interface Placement {
  readonly nodeId: string;
  /** The first generation of that desired state with this run. Earlier reports do not belong to it. */
  readonly since: number;
  /** The generation that no longer contains it. Null while it should run there. */
  readonly releasedAt: number | null;
}

/** The last observation, and the reason for the current state. */
export type ObservedAgent = Omit<AgentRuntime, "nodeId">;

export const NOTHING_OBSERVED: ObservedAgent = {
  image: "",
  imageDigest: "",
  startedAt: null,
  restartCount: 0,
  lastExit: null,
  message: "",
};

/** Whether tokens of this run are valid. */
export function isLive({ wanted, lifecycleState, placement }: AgentRecord): boolean {
  return wanted && lifecycleState !== "deleting" && placement !== null && placement.releasedAt === null;
}

/** The name of its workload on the node. */
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
  return new DomainError("agent_deleting", "The agent is being deleted. It is removed once its node reports it gone.");
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
