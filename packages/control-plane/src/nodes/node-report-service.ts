import { isDeepStrictEqual } from "node:util";
import type { Clock } from "@fairlead/protocol/clock";
import type { Condition } from "@fairlead/protocol/conditions";
import type { Hello, NodeEvent, Observation } from "@fairlead/protocol/daemon-link";
import { DomainError } from "@fairlead/protocol/errors";
import type { IdSource } from "@fairlead/protocol/ids";
import type { DesiredState, ReadyRequest, WorkloadReport } from "@fairlead/protocol/workload";
import { WORKLOAD_TYPE_ENGINE } from "@fairlead/protocol/workload";
import type { IdentityWatch } from "./identity-watch.ts";
import type { NodeChanges } from "./node-changes.ts";
import type { NodeReport } from "./node-report-store.ts";
import { nodeNotFound } from "./node-service.ts";
import type { NodeStatusService } from "./node-status-service.ts";
import type { NodeStores } from "./node-stores.ts";

export interface NodeReportDeps {
  readonly stores: NodeStores;
  readonly status: NodeStatusService;
  readonly identities: IdentityWatch;
  readonly changes: NodeChanges;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly installationId: string;
  readonly epoch: string;
}

const ALL_READY = "All workloads are ready.";

/** Takes what daemons say, keeps it, and derives the status from it. The link alone never makes a node `active` (design §4). */
export class NodeReportService {
  readonly #deps: NodeReportDeps;

  constructor(deps: NodeReportDeps) {
    this.#deps = deps;
  }

  /** What the node shall run now. @throws DomainError not_found */
  async desiredState(nodeId: string): Promise<DesiredState> {
    const { stores, epoch, installationId } = this.#deps;
    // In this order: a generation that is told with an older status is followed by a newer one.
    const desired = await stores.reports.desired(nodeId);
    const node = await stores.nodes.find(nodeId);
    if (!node || !desired) throw nodeNotFound();
    const { generation } = desired;
    const workloads = node.status === "drained" ? [] : desired.workloads;
    return { epoch, installationId, nodeId, projectId: node.projectId, generation, workloads };
  }

  async hello(nodeId: string, hello: Hello): Promise<void> {
    await this.#deps.stores.nodes.setDaemonVersion(nodeId, hello.daemonVersion);
    await this.#deps.identities.hello(nodeId, hello);
  }

  async heartbeat(nodeId: string): Promise<void> {
    await this.#deps.identities.heartbeat(nodeId);
  }

  /** `POST /v1/nodes/{id}/ready`. Idempotent; a report of an older generation is accepted and ignored. */
  async ready(nodeId: string, request: ReadyRequest): Promise<void> {
    const { stores, epoch } = this.#deps;
    const desired = await stores.reports.desired(nodeId);
    if (!desired) throw nodeNotFound();
    const generation = oldestGeneration(request.workloadReports) ?? desired.generation;
    if (generation < desired.generation) return;
    await stores.nodes.setOperatingSystem(nodeId, request.operatingSystem);
    await this.#keep({
      nodeId,
      epoch,
      generation,
      reports: request.workloadReports,
      workerImageDigest: request.workerImageDigest,
    });
    const waiting = request.workloadReports.filter((report) => !report.ready);
    const complete = request.workloadReports.length >= desired.workloads.length;
    if (complete && waiting.length === 0) await this.#deps.status.apply(nodeId, "reported_ready", ALL_READY);
    else await this.#notReady(nodeId, waiting);
  }

  /** An observation over the link: it can take `active` away, never give it. Another epoch's is ignored. */
  async observe(nodeId: string, observation: Observation): Promise<void> {
    const { stores, epoch } = this.#deps;
    const desired = await stores.reports.desired(nodeId);
    if (!desired || observation.epoch !== epoch) return;
    if (observation.conditions) await this.#keepConditions(nodeId, observation.conditions);
    if (observation.generation < desired.generation) return;
    const reports = observation.workloadReports;
    await this.#keep({
      nodeId,
      epoch,
      generation: observation.generation,
      reports,
      workerImageDigest: engineReport(reports)?.imageDigest ?? "",
    });
    const waiting = reports.filter((report) => !report.ready);
    if (waiting.length > 0) await this.#notReady(nodeId, waiting);
    else await this.#tellServing(nodeId, observation);
  }

  /** What really runs; with nothing running, what ran last. @throws DomainError no_running_engine where nothing ever did */
  async engineVersion(nodeId: string): Promise<string> {
    const report = await this.#deps.stores.reports.report(nodeId);
    if (report && report.lastVersion !== "") return report.lastVersion;
    throw new DomainError("no_running_engine", "This node's engine has not run yet, so it has no version.", {
      retryAfterSeconds: 5,
    });
  }

  async events(nodeId: string, events: readonly NodeEvent[]): Promise<void> {
    await this.#deps.stores.events.append(
      events.map((event) => ({
        id: this.#deps.ids.next("event"),
        sourceId: `${nodeId}.${event.id}`,
        nodeId,
        at: this.#deps.clock.now(),
        kind: event.kind,
        status: null,
        message: event.message,
      })),
    );
  }

  async #keep(report: Omit<NodeReport, "reportedAt" | "lastVersion">): Promise<void> {
    const lastVersion = engineReport(report.reports)?.version ?? "";
    const reportedAt = this.#deps.clock.now();
    if (!(await this.#deps.stores.reports.setReport({ ...report, lastVersion, reportedAt }))) return;
    const node = await this.#deps.stores.nodes.find(report.nodeId);
    if (node) this.#deps.changes.emit({ nodeId: node.id, projectId: node.projectId, aspect: "report" });
  }

  async #keepConditions(nodeId: string, conditions: readonly Condition[]): Promise<void> {
    const { nodes } = this.#deps.stores;
    const node = await nodes.find(nodeId);
    if (node === null || isDeepStrictEqual(node.conditions, conditions)) return;
    await nodes.setConditions(nodeId, conditions);
    this.#deps.changes.emit({ nodeId, projectId: node.projectId, aspect: "report" });
  }

  /** An active node that still serves an older generation says why: its update is under way, or was rolled back (design §6). */
  async #tellServing(nodeId: string, { generation, workloadReports }: Observation): Promise<void> {
    const { nodes } = this.#deps.stores;
    const node = await nodes.find(nodeId);
    if (node?.status !== "active") return;
    const behind = workloadReports.filter((report) => report.generation < generation && report.message !== "");
    const message = behind.map((report) => `${report.workloadId}: ${report.message}`).join("; ") || ALL_READY;
    // A note that says more, such as that two daemons share the identity, stands.
    const told = [ALL_READY, ...workloadReports.map((report) => `${report.workloadId}: `)];
    if (message === node.statusMessage || !told.some((text) => node.statusMessage.startsWith(text))) return;
    await nodes.setStatusMessage(nodeId, message);
    this.#deps.changes.emit({ nodeId, projectId: node.projectId, aspect: "report" });
  }

  async #notReady(nodeId: string, waiting: readonly WorkloadReport[]): Promise<void> {
    const names = waiting.map(
      (report) => `${report.workloadId} is ${report.state}${report.message && `: ${report.message}`}`,
    );
    await this.#deps.status.apply(nodeId, "reported_not_ready", names.join("; ") || "A workload is missing.");
  }
}

function engineReport(reports: readonly WorkloadReport[]): WorkloadReport | undefined {
  return reports.find((report) => report.workloadType === WORKLOAD_TYPE_ENGINE);
}

function oldestGeneration(reports: readonly WorkloadReport[]): number | null {
  return reports.length === 0 ? null : Math.min(...reports.map((report) => report.generation));
}
