import { AGENTS_PROTOCOL_VERSION } from "@fairlead/protocol/daemon-link";
import { WORKLOAD_TYPE_AGENT, type WorkloadReport, type WorkloadSpec } from "@fairlead/protocol/workload";
import type { NodeRecord } from "./node.ts";

/** What of a node's plan its daemon is told, and what that says of its agents. Pure. */

/**
 * Agents stop as soon as the node drains, and the engine, which they may be using, once it has drained. A daemon that does not know
 * agents would refuse a desired state that names one, its engine and all.
 */
export function toldWorkloads(
  { status, daemonProtocol }: Pick<NodeRecord, "status" | "daemonProtocol">,
  planned: readonly WorkloadSpec[],
): readonly WorkloadSpec[] {
  if (status === "drained") return [];
  return status === "draining" || !knowsAgents(daemonProtocol) ? planned.filter((spec) => !isAgent(spec)) : planned;
}

/** @param daemonProtocol the link's version; null: not known yet. */
export function knowsAgents(daemonProtocol: number | null): boolean {
  return daemonProtocol !== null && daemonProtocol >= AGENTS_PROTOCOL_VERSION;
}

export function isAgent({ workloadType }: Pick<WorkloadSpec | WorkloadReport, "workloadType">): boolean {
  return workloadType === WORKLOAD_TYPE_AGENT;
}
