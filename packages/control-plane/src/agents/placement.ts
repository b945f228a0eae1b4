import type { HostFacts } from "../nodes/agent-hosts.ts";
import type { AgentRecord } from "./agent.ts";

/**
 * Where an agent stands (design §10). Pure. It stands on one node's desired state at most, and is placed anew only once that node has
 * reported it gone: so it never runs twice.
 */

/** `place`: onto the desired state of its node. `release`: off the one that has it. `leave`: it is gone from there. `forget`: its row goes. */
export type PlacementStep = "place" | "release" | "leave" | "forget";

export interface PlacementFacts {
  /** The node on which it is placed. Null: there is none, or no more. */
  readonly placedOn: HostFacts | null;
  /** The node on which it is to run. */
  readonly target: HostFacts | null;
  /** Somebody answers for it that it may still run on a node that does not answer. */
  readonly force: boolean;
}

/** What comes next; null: it stands as it should, or has to wait. */
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

/** Not deleted, nor about to be: then its identity is revoked, and its daemon takes down what it ran. */
export function isThere(host: HostFacts | null): host is HostFacts {
  return host !== null && host.status !== "deleting";
}

/** It may still run what it ran, and nobody can tell. */
export function isQuiet(host: HostFacts): boolean {
  return host.status === "unreachable";
}

function reportsGone(agentId: string, releasedAt: number, { report }: HostFacts): boolean {
  if (report === null || report.generation < releasedAt) return false;
  return report.reports.every(({ workloadId }) => workloadId !== agentId);
}
