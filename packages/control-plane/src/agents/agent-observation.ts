import { rfc3339 } from "@fairlead/protocol/clock";
import type { WorkloadReport } from "@fairlead/protocol/workload";
import type { HostFacts } from "../nodes/agent-hosts.ts";
import { type AgentRecord, NOTHING_OBSERVED, type Observed, type Placement } from "./agent.ts";
import type { AgentLifecycleEvent } from "./agent-lifecycle.ts";
import { isQuiet, isThere } from "./placement.ts";

/** What is seen of an agent on its node, and what that means for its life. Pure. */

export interface Observation {
  /** Null: nothing that its state could follow. */
  readonly event: AgentLifecycleEvent | null;
  readonly observed: Observed;
}

/** @param host on which it is placed, else its own node. Null: there is none any more. */
export function observe(agent: AgentRecord, host: HostFacts | null): Observation {
  const { placement } = agent;
  if (placement === null) return observeUnplaced(agent, host);
  if (!isThere(host)) return seen(agent, null, "Its node was deleted.");
  if (placement.releasedAt !== null) return observeReleased(agent, host);
  if (isQuiet(host)) return { event: "node_went_quiet", observed: { ...agent.observed, message: quiet(host) } };
  const report = reportOf(agent.id, placement, host);
  if (host.status === "draining" || host.status === "drained") return observeOutOfService(agent, host, report);
  return observeReport(agent, host, report);
}

function observeUnplaced(agent: AgentRecord, host: HostFacts | null): Observation {
  const { lifecycleState, wanted } = agent;
  if (wanted) return seen(agent, "node_deleted", "Its node was deleted: give it another as `runtimeProvider`.");
  if (lifecycleState === "created") {
    const message = isThere(host) ? "It was not started yet." : "Its node was deleted.";
    return seen(agent, null, message);
  }
  return seen(agent, "reported_gone", "It was stopped.");
}

/** It is to go from there: because somebody stopped or deleted it, or because it moves. */
function observeReleased(agent: AgentRecord, host: HostFacts): Observation {
  let message = `Waiting for node ${host.name} to stop it.`;
  if (isQuiet(host))
    message = agent.wanted ? `${quiet(host)} It starts anew once that node says that it is gone.` : quiet(host);
  return { event: null, observed: { ...agent.observed, message } };
}

function observeOutOfService(agent: AgentRecord, host: HostFacts, report: WorkloadReport | null): Observation {
  const isStopping = report !== null || agent.lifecycleState === "starting" || agent.lifecycleState === "running";
  const message = `Node ${host.name} is ${host.status}: it starts again when the node is resumed.`;
  if (isStopping) return { event: "node_drained", observed: { ...agent.observed, message } };
  return seen(agent, agent.lifecycleState === "failed" ? "node_drained" : "reported_gone", message);
}

function observeReport(agent: AgentRecord, host: HostFacts, report: WorkloadReport | null): Observation {
  if (report === null) {
    const message = host.runsAgents
      ? `Waiting for node ${host.name} to start it.`
      : `The daemon of node ${host.name} is too old to run agents: update it.`;
    return seen(agent, "reported_not_ready", message);
  }
  const { image, imageDigest, startedAt, restartCount, lastExit } = report;
  const observed = { image, imageDigest, startedAt, restartCount, lastExit, message: messageOf(report) };
  if (report.state === "failed") return { event: "reported_failed", observed };
  return { event: report.ready ? "reported_ready" : "reported_not_ready", observed };
}

/** What was said of an earlier run there is not said of this one. */
function reportOf(agentId: string, { since }: Placement, { report }: HostFacts): WorkloadReport | null {
  if (report === null || report.generation < since) return null;
  return report.reports.find(({ workloadId }) => workloadId === agentId) ?? null;
}

const DOING: Readonly<Record<WorkloadReport["state"], string>> = {
  pending: "Its node is about to start it.",
  pulling: "Its image is being pulled.",
  starting: "It was started, and is not ready yet.",
  running: "It runs, and is not ready.",
  "backing-off": "It ended, and is started again in a while.",
  stopping: "It is being stopped, and is started again.",
  failed: "It cannot be run.",
  unknown: "Its node cannot tell how it is.",
};

function messageOf({ ready, state, message, progress }: WorkloadReport): string {
  if (message !== "") return message;
  if (ready) return "It is ready.";
  return state === "pulling" && typeof progress === "number"
    ? `Its image is being pulled: ${progress} %.`
    : DOING[state];
}

function quiet(host: HostFacts): string {
  return `Node ${host.name} does not answer since ${rfc3339(host.statusSince)}; the agent may still run there.`;
}

/** Nothing of it runs, as far as is known; how it last ended is kept. */
function seen(agent: AgentRecord, event: AgentLifecycleEvent | null, message: string): Observation {
  return { event, observed: { ...NOTHING_OBSERVED, lastExit: agent.observed.lastExit, message } };
}
