import { rfc3339 } from "@fairlead/protocol/values/clock";
import type { WorkloadReport } from "@fairlead/protocol/workload";
import type { AgentHostFacts } from "../../nodes/agents/agent-hosts.ts";
import { type AgentRecord, NOTHING_OBSERVED, type ObservedAgent, type Placement } from "../definition/agent.ts";
import type { AgentLifecycleEvent } from "./agent-lifecycle.ts";
import { isQuiet, isThere } from "./placement.ts";

/** Derives lifecycle events of an agent from its node's reports. Pure. */

export interface AgentObservation {
  /** Null: no event. */
  readonly event: AgentLifecycleEvent | null;
  readonly observed: ObservedAgent;
}

/** @param host where it is placed, otherwise its configured node. Null: deleted. */
export function observeAgent(agent: AgentRecord, host: AgentHostFacts | null): AgentObservation {
  const { placement } = agent;
  if (placement === null) return observeUnplaced(agent, host);
  if (!isThere(host)) return seen(agent, null, "Its node was deleted.");
  if (placement.releasedAt !== null) return observeReleased(agent, host);
  if (isQuiet(host)) return { event: "node_went_quiet", observed: { ...agent.observed, message: quiet(host) } };
  const report = reportOf(agent.id, placement, host);
  if (host.status === "draining" || host.status === "drained") return observeOutOfService(agent, host, report);
  return observeReport(agent, host, report);
}

function observeUnplaced(agent: AgentRecord, host: AgentHostFacts | null): AgentObservation {
  const { lifecycleState, wanted } = agent;
  if (wanted) return seen(agent, "node_deleted", "Its node was deleted. Set another node as `runtimeProvider`.");
  if (lifecycleState === "created") {
    const message = isThere(host) ? "Not started." : "Its node was deleted.";
    return seen(agent, null, message);
  }
  return seen(agent, "reported_gone", "Stopped.");
}

/** Released: stopped, deleted or moving away. */
function observeReleased(agent: AgentRecord, host: AgentHostFacts): AgentObservation {
  let message = `Waiting for node ${host.name} to stop it.`;
  if (isQuiet(host))
    message = agent.wanted ? `${quiet(host)} It is started again once that node reports it gone.` : quiet(host);
  return { event: null, observed: { ...agent.observed, message } };
}

function observeOutOfService(
  agent: AgentRecord,
  host: AgentHostFacts,
  report: WorkloadReport | null,
): AgentObservation {
  const isStopping = report !== null || agent.lifecycleState === "starting" || agent.lifecycleState === "running";
  const message = `Node ${host.name} is ${host.status}. The agent starts again when the node is resumed.`;
  if (isStopping) return { event: "node_drained", observed: { ...agent.observed, message } };
  return seen(agent, agent.lifecycleState === "failed" ? "node_drained" : "reported_gone", message);
}

function observeReport(agent: AgentRecord, host: AgentHostFacts, report: WorkloadReport | null): AgentObservation {
  if (report === null) return seen(agent, "reported_not_ready", `Waiting for node ${host.name} to start it.`);
  const { image, imageDigest, startedAt, restartCount, lastExit } = report;
  const observed = { image, imageDigest, startedAt, restartCount, lastExit, message: messageOf(report) };
  if (report.state === "failed") return { event: "reported_failed", observed };
  return { event: report.ready ? "reported_ready" : "reported_not_ready", observed };
}

/** Reports of an earlier run do not apply to this one. */
function reportOf(agentId: string, { since }: Placement, { report }: AgentHostFacts): WorkloadReport | null {
  if (report === null || report.generation < since) return null;
  return report.reports.find(({ workloadId }) => workloadId === agentId) ?? null;
}

const DOING: Readonly<Record<WorkloadReport["state"], string>> = {
  pending: "Waiting to be started by its node.",
  pulling: "Pulling its image.",
  starting: "Started, but not ready yet.",
  running: "Running, but not ready.",
  "backing-off": "Exited; waiting to restart.",
  stopping: "Stopping, to be restarted.",
  failed: "Cannot be run.",
  unknown: "Its node cannot determine its state.",
};

function messageOf({ ready, state, message, progress }: WorkloadReport): string {
  if (message !== "") return message;
  if (ready) return "Ready.";
  return state === "pulling" && typeof progress === "number" ? `Pulling its image: ${progress} %.` : DOING[state];
}

function quiet(host: AgentHostFacts): string {
  return `Node ${host.name} has not responded since ${rfc3339(host.statusSince)}. The agent may still be running there.`;
}

/** Nothing is known to run. The last exit is kept. */
function seen(agent: AgentRecord, event: AgentLifecycleEvent | null, message: string): AgentObservation {
  return { event, observed: { ...NOTHING_OBSERVED, lastExit: agent.observed.lastExit, message } };
}
