import type { WorkloadReport, WorkloadSpec, WorkloadState } from "@fairlead/protocol/workload";
import { isAgent } from "./told-workloads.ts";

/** What reports of workloads say of their node. Pure. */

export const ALL_READY = "All workloads are ready.";

/** An agent that is on its way says nothing of its node; one that needs somebody, or that nothing is known of, does. */
const TROUBLED: ReadonlySet<WorkloadState> = new Set(["backing-off", "failed", "unknown"]);

/** Those that keep the node from being active: an engine that is not ready, an agent in trouble. */
export function waitingFor(reports: readonly WorkloadReport[]): WorkloadReport[] {
  return reports.filter((report) => (isAgent(report) ? TROUBLED.has(report.state) : !report.ready));
}

/** Whether the reports speak of every engine that the daemon was told. */
export function tellsOfEngines(told: readonly WorkloadSpec[], reports: readonly WorkloadReport[]): boolean {
  const reported = new Set(reports.map(({ workloadId }) => workloadId));
  return told.every((spec) => isAgent(spec) || reported.has(spec.workloadId));
}

/** Of a node that waits for these. */
export function waitingMessage(waiting: readonly WorkloadReport[]): string {
  const reasons = waiting.map(
    (report) => `${beginning(report)}${report.state}${report.message && `: ${report.message}`}`,
  );
  return reasons.join("; ") || "A workload is missing.";
}

/** Whether a node's message may be one that `waitingMessage` made of workloads as these. */
export function tellsWaiting(message: string, waiting: readonly WorkloadReport[]): boolean {
  return waiting.some((report) => message.startsWith(beginning(report)));
}

/** Of a node whose workloads are in order: those that serve an older generation say why. */
export function servingMessage(generation: number, reports: readonly WorkloadReport[]): string {
  const behind = reports.filter((report) => report.generation < generation && report.message !== "");
  return behind.map((report) => `${nameOf(report)}: ${report.message}`).join("; ") || ALL_READY;
}

/** Whether a node's message may be one that `servingMessage` made of workloads as these. */
export function tellsServing(message: string, reports: readonly WorkloadReport[]): boolean {
  return message === ALL_READY || reports.some((report) => message.startsWith(`${nameOf(report)}: `));
}

function beginning(report: WorkloadReport): string {
  return `${nameOf(report)} is `;
}

function nameOf(report: WorkloadReport): string {
  return isAgent(report) ? `agent ${report.workloadId}` : report.workloadId;
}
