import type { AgentHostFacts } from "../../nodes/agents/agent-hosts.ts";
import type { AgentRecord } from "../definition/agent.ts";

/**
 * Decides an agent's placement (decisions/0034). Pure. An agent is in at most one node's desired state and is placed
 * again only after that node reported it gone, so it never runs twice.
 */

/**
 * `place`: add it to its node's desired state. `release`: remove it from the current one. `leave`: that node reported
 * it gone. `forget`: delete its row.
 */
export type PlacementStep = "place" | "release" | "leave" | "forget";

export interface PlacementFacts {
  /** The node where it is placed. Null: none, or the node was deleted. */
  readonly placedOn: AgentHostFacts | null;
  /** The node where it should run. */
  readonly target: AgentHostFacts | null;
  /** A user accepts that it may still run on a node that does not respond. */
  readonly force: boolean;
}

/** The next step; null: it is where it should be, or has to wait. */
export function placementStep(agent: AgentRecord, { placedOn, target, force }: PlacementFacts): PlacementStep | null {
  const deleting = agent.lifecycleState === "deleting";
  const { placement } = agent;
  if (placement === null) {
    if (deleting) return "forget";
    return agent.wanted && isThere(target) ? "place" : null;
  }
  if (!isThere(placedOn)) return "leave";
  if (placement.releasedAt === null) {
    const stays = agent.wanted && !deleting && placement.nodeId === agent.nodeId;
    return stays ? null : "release";
  }
  const isAway = reportsGone(agent.id, placement.releasedAt, placedOn) || (force && isQuiet(placedOn));
  return isAway ? "leave" : null;
}

/** Exists and is not being deleted: deletion revokes the node's identity, and its daemon removes its workloads. */
export function isThere(host: AgentHostFacts | null): host is AgentHostFacts {
  return host !== null && host.status !== "deleting";
}

/** It may still run its workloads, but does not report. */
export function isQuiet(host: AgentHostFacts): boolean {
  return host.status === "unreachable";
}

function reportsGone(agentId: string, releasedAt: number, { report }: AgentHostFacts): boolean {
  if (report === null || report.generation < releasedAt) return false;
  return report.reports.every(({ workloadId }) => workloadId !== agentId);
}
