import { isDeepStrictEqual } from "node:util";
import type { Condition } from "@fairlead/protocol/conditions";
import type { Hello, Observation, ReportedNodeEvent } from "@fairlead/protocol/daemon-link";
import type { DaemonUpdate } from "@fairlead/protocol/daemon-updates";
import { DomainError } from "@fairlead/protocol/errors";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { IdSource } from "@fairlead/protocol/values/ids";
import type { DesiredState, ReadyRequest, WorkloadReport } from "@fairlead/protocol/workload";
import { WORKLOAD_TYPE_ENGINE } from "@fairlead/protocol/workload";
import type { AgentHistories } from "../desired/agents-on-node.ts";
import type { DaemonVersionService } from "../desired/daemon-version-service.ts";
import type { IdentityWatch } from "../enrolment/identity-watch.ts";
import type { NodeChangeFeed } from "../node-change-feed.ts";
import type { NodeRates } from "../node-rates.ts";
import { nodeNotFound } from "../node-service.ts";
import type { NodeHistory } from "../records/node-history.ts";
import type { NodeReport } from "../records/node-report-store.ts";
import type { NodeStores } from "../records/node-stores.ts";
import type { NodeStatusService } from "./node-status-service.ts";
import { sentWorkloads } from "./sent-workloads.ts";
import {
  servingMessage,
  tellsOfEngines,
  tellsServing,
  tellsWaiting,
  waitingFor,
  waitingMessage,
} from "./workload-readiness.ts";

export interface NodeReportDeps {
  readonly stores: NodeStores;
  readonly status: NodeStatusService;
  readonly identities: IdentityWatch;
  readonly rates: Pick<NodeRates, "require">;
  readonly history: NodeHistory;
  readonly histories: AgentHistories;
  readonly daemons: Pick<DaemonVersionService, "wantedBy" | "observed">;
  readonly changes: NodeChangeFeed;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly installationId: string;
  readonly epoch: string;
}

/** Events this recent arrived without delay, so the difference is clock skew. */
const PROMPT_MS = 5000;
/** Longer than any daemon keeps an event. */
const OLDEST_MS = 90 * 24 * 3_600_000;

/** Stores daemons' reports and derives node statuses from them. The link alone never makes a node `active`. */
export class NodeReportService {
  readonly #deps: NodeReportDeps;

  constructor(deps: NodeReportDeps) {
    this.#deps = deps;
  }

  /** The desired state. @throws DomainError not_found */
  async desiredState(nodeId: string): Promise<DesiredState> {
    const { stores, epoch, installationId } = this.#deps;
    // In this order: a generation read with an outdated status is followed by a newer one.
    const desired = await stores.reports.desired(nodeId);
    const node = await stores.nodes.find(nodeId);
    if (!node || !desired) throw nodeNotFound();
    const { generation } = desired;
    const workloads = [...sentWorkloads(node.status, desired.workloads)];
    const daemon = await this.#deps.daemons.wantedBy(node);
    const state = { epoch, installationId, nodeId, projectId: node.projectId, generation, workloads };
    return daemon === null ? state : { ...state, daemon };
  }

  async hello(nodeId: string, hello: Hello): Promise<void> {
    await this.#deps.stores.nodes.setDaemonVersion(nodeId, hello.daemonVersion);
    await this.#deps.identities.hello(nodeId, hello);
  }

  async heartbeat(nodeId: string): Promise<void> {
    await this.#deps.identities.heartbeat(nodeId);
  }

  /**
   * `POST /v1/nodes/{id}/ready`. Idempotent. A report of an older generation is ignored, unless the daemon observed it under the current one:
   * an update that is running or was rolled back.
   */
  async ready(nodeId: string, request: ReadyRequest): Promise<void> {
    const { stores, rates, epoch } = this.#deps;
    rates.require(nodeId, "ready");
    const desired = await stores.reports.desired(nodeId);
    const node = await stores.nodes.find(nodeId);
    if (!node || !desired) throw nodeNotFound();
    const { workloadReports } = request;
    const generation = oldestGeneration(workloadReports);
    const isPresent = generation !== null && generation >= desired.generation;
    const isKnown = isPresent || (await this.#isObserved(nodeId, desired.generation, workloadReports));
    // Without reports there is no generation; removed agents are reported over the link.
    if (generation !== null && !isKnown) return;
    await stores.nodes.setOperatingSystem(nodeId, request.operatingSystem);
    if (isKnown) {
      await this.#keep({
        nodeId,
        epoch,
        generation: isPresent ? generation : desired.generation,
        reports: workloadReports,
        workerImageDigest: request.workerImageDigest,
      });
    }
    const waiting = waitingFor(workloadReports);
    const complete = tellsOfEngines(sentWorkloads(node.status, desired.workloads), workloadReports);
    if (complete && waiting.length === 0)
      await this.#deps.status.apply(nodeId, "reported_ready", servingMessage(desired.generation, workloadReports));
    else await this.#notReady(nodeId, waiting);
  }

  /** An observation over the link, which can only take `active` away. Other epochs are ignored. */
  async observe(nodeId: string, observation: Observation): Promise<void> {
    const { stores, epoch } = this.#deps;
    const desired = await stores.reports.desired(nodeId);
    if (!desired || observation.epoch !== epoch) return;
    if (observation.conditions) await this.#keepConditions(nodeId, observation.conditions);
    if (observation.daemonUpdate !== undefined) await this.#keepUpdate(nodeId, observation.daemonUpdate);
    if (observation.generation < desired.generation) return;
    const reports = observation.workloadReports;
    await this.#keep({
      nodeId,
      epoch,
      generation: observation.generation,
      reports,
      workerImageDigest: engineReport(reports)?.imageDigest ?? "",
    });
    const waiting = waitingFor(reports);
    if (waiting.length > 0) await this.#notReady(nodeId, waiting);
    else await this.#tellServing(nodeId, observation);
  }

  /** The running version, or the last one. @throws DomainError no_running_engine if nothing ever ran */
  async engineVersion(nodeId: string): Promise<string> {
    const report = await this.#deps.stores.reports.report(nodeId);
    if (report && report.lastVersion !== "") return report.lastVersion;
    throw new DomainError("no_running_engine", "This node's engine has not run yet, so its version is unknown.", {
      retryAfterSeconds: 5,
    });
  }

  async events(nodeId: string, events: readonly ReportedNodeEvent[]): Promise<void> {
    const { clock, ids, stores, history, histories } = this.#deps;
    const now = clock.now();
    await history.open(nodeId);
    const kept = events.slice(0, history.take(nodeId, events.length));
    await stores.events.append(
      kept.map((event) => ({
        id: ids.next("event"),
        sourceId: `${nodeId}.${event.id}`,
        nodeId,
        at: timeOf(event, now),
        kind: event.kind,
        status: null,
        message: event.message,
      })),
    );
    await histories.take(nodeId, events);
    await history.settle(nodeId);
  }

  /** Its link was closed because it exceeded the limits. */
  async flooded(nodeId: string, reason: string): Promise<void> {
    await this.#deps.history.flooded(nodeId, reason);
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

  /** Whether this is the latest observation of this generation: older ones may arrive late and are ignored. */
  async #isObserved(nodeId: string, generation: number, reports: readonly WorkloadReport[]): Promise<boolean> {
    const last = await this.#deps.stores.reports.report(nodeId);
    if (last?.epoch !== this.#deps.epoch || last.generation !== generation) return false;
    const shown = (all: readonly WorkloadReport[]): unknown =>
      all.map((report) => [report.workloadId, report.generation, report.ready]);
    return isDeepStrictEqual(shown(last.reports), shown(reports));
  }

  async #keepUpdate(nodeId: string, update: DaemonUpdate | null): Promise<void> {
    const node = await this.#deps.stores.nodes.find(nodeId);
    if (node !== null) await this.#deps.daemons.observed(node, update);
  }

  /** Shows on an active node why it still serves an older generation: its update is running or was rolled back. */
  async #tellServing(nodeId: string, { generation, workloadReports }: Observation): Promise<void> {
    const { nodes } = this.#deps.stores;
    const node = await nodes.find(nodeId);
    if (node?.status !== "active") return;
    const message = servingMessage(generation, workloadReports);
    // Keeps a more specific message, such as that two daemons use the identity.
    if (message === node.statusMessage || !tellsServing(node.statusMessage, workloadReports)) return;
    await nodes.setStatusMessage(nodeId, message);
    this.#deps.changes.emit({ nodeId, projectId: node.projectId, aspect: "report" });
  }

  async #notReady(nodeId: string, waiting: readonly WorkloadReport[]): Promise<void> {
    const message = waitingMessage(waiting);
    await this.#deps.status.apply(nodeId, "reported_not_ready", message);
    await this.#tellWaiting(nodeId, message, waiting);
  }

  /** Updates what a node waits for. */
  async #tellWaiting(nodeId: string, message: string, waiting: readonly WorkloadReport[]): Promise<void> {
    const { nodes } = this.#deps.stores;
    const node = await nodes.find(nodeId);
    if (node === null || node.statusMessage === message) return;
    // Keeps a more specific message.
    if (node.status !== "starting" && !(node.status === "degraded" && tellsWaiting(node.statusMessage, waiting)))
      return;
    await nodes.setStatusMessage(nodeId, message);
    this.#deps.changes.emit({ nodeId, projectId: node.projectId, aspect: "report" });
  }
}

function engineReport(reports: readonly WorkloadReport[]): WorkloadReport | undefined {
  return reports.find((report) => report.workloadType === WORKLOAD_TYPE_ENGINE);
}

function oldestGeneration(reports: readonly WorkloadReport[]): number | null {
  return reports.length === 0 ? null : Math.min(...reports.map((report) => report.generation));
}

/** Events without delay get our time; delayed ones keep their own, if plausible. */
function timeOf({ at }: ReportedNodeEvent, now: number): number {
  const age = now - Date.parse(at);
  return age > PROMPT_MS && age < OLDEST_MS ? now - age : now;
}
