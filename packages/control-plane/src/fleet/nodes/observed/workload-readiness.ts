import { cutText } from "@fairlead/protocol/values/text";
import type { WorkloadReport, WorkloadSpec, WorkloadState } from "@fairlead/protocol/workload";
import { isAgent } from "./sent-workloads.ts";

/** Derives node messages from workload reports. Pure. */

/** Hundreds of workloads may each have a long message. */
const MAX_MESSAGE = 2048;

const ALL_READY = "All workloads are ready.";
const ENGINE_READY = "Engine is ready.";

const STATE_WORDS: Readonly<Record<WorkloadState, string>> = {
  pending: "waiting to start",
  pulling: "pulling its image",
  starting: "starting",
  running: "not ready",
  "backing-off": "waiting to restart",
  stopping: "stopping",
  failed: "unable to run",
  unknown: "in an unknown state",
};

/** An agent that is starting does not affect its node; one that needs intervention or is unknown does. */
const TROUBLED: ReadonlySet<WorkloadState> = new Set(["backing-off", "failed", "unknown"]);

/** Workloads that keep the node from being active: an engine that is not ready, an agent with a problem. */
export function waitingFor(reports: readonly WorkloadReport[]): WorkloadReport[] {
  return reports.filter((report) => (isAgent(report) ? TROUBLED.has(report.state) : !report.ready));
}

/** Whether the reports cover every engine sent to the daemon. */
export function tellsOfEngines(told: readonly WorkloadSpec[], reports: readonly WorkloadReport[]): boolean {
  const reported = new Set(reports.map(({ workloadId }) => workloadId));
  return told.every((spec) => isAgent(spec) || reported.has(spec.workloadId));
}

/** The message of a node that waits for these. */
export function waitingMessage(waiting: readonly WorkloadReport[]): string {
  const reasons = waiting.map(
    (report) => `${beginning(report)}${STATE_WORDS[report.state]}${report.message && `: ${report.message}`}`,
  );
  return cutText(reasons.join("; "), MAX_MESSAGE) || "A workload is missing.";
}

/** Whether `waitingMessage` may have produced this message for such workloads. */
export function tellsWaiting(message: string, waiting: readonly WorkloadReport[]): boolean {
  return waiting.some((report) => message.startsWith(beginning(report)));
}

/** The message of a ready node, naming workloads that still serve an older generation. */
export function servingMessage(generation: number, reports: readonly WorkloadReport[]): string {
  const behind = reports.filter((report) => report.generation < generation && report.message !== "");
  const words = cutText(behind.map((report) => `${nameOf(report)}: ${report.message}`).join("; "), MAX_MESSAGE);
  return words || (reports.length === 0 || reports.some(isAgent) ? ALL_READY : ENGINE_READY);
}

/** Whether `servingMessage` may have produced this message for such workloads. */
export function tellsServing(message: string, reports: readonly WorkloadReport[]): boolean {
  return (
    [ALL_READY, ENGINE_READY].includes(message) || reports.some((report) => message.startsWith(`${nameOf(report)}: `))
  );
}

function beginning(report: WorkloadReport): string {
  return `${nameOf(report)} is `;
}

function nameOf(report: WorkloadReport): string {
  return isAgent(report) ? `agent ${report.workloadId}` : "engine";
}
