import type { NodeStatus } from "@fairlead/protocol/resources";
import { WORKLOAD_TYPE_AGENT, type WorkloadReport, type WorkloadSpec } from "@fairlead/protocol/workload";

/** The part of a node's plan that is sent to its daemon, and what that means for agents. Pure. */

/** Agents stop as soon as the node drains; the engine, which they may use, stops after the drain. */
export function sentWorkloads(status: NodeStatus, planned: readonly WorkloadSpec[]): readonly WorkloadSpec[] {
  if (status === "drained") return [];
  return status === "draining" ? planned.filter((spec) => !isAgent(spec)) : planned;
}

export function isAgent({ workloadType }: Pick<WorkloadSpec | WorkloadReport, "workloadType">): boolean {
  return workloadType === WORKLOAD_TYPE_AGENT;
}
