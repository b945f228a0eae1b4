import { isDeepStrictEqual } from "node:util";
import type { Clock } from "@fairlead/protocol/clock";
import type { Condition } from "@fairlead/protocol/conditions";
import { type Hello, type NodeEvent, type Observation, PROTOCOL_VERSIONS } from "@fairlead/protocol/daemon-link";
import type { DaemonUpdate } from "@fairlead/protocol/daemon-updates";
import { DomainError } from "@fairlead/protocol/errors";
import type { IdSource } from "@fairlead/protocol/ids";
import type { DesiredState, ReadyRequest, WorkloadReport } from "@fairlead/protocol/workload";
import { WORKLOAD_TYPE_ENGINE } from "@fairlead/protocol/workload";
import type { AgentHistories } from "./agents-on-node.ts";
import type { DesiredDaemonService } from "./desired-daemon-service.ts";
import type { IdentityWatch } from "./identity-watch.ts";
import type { NodeChanges } from "./node-changes.ts";
import type { NodeReport } from "./node-report-store.ts";
import { nodeNotFound } from "./node-service.ts";
import type { NodeStatusService } from "./node-status-service.ts";
import type { NodeStores } from "./node-stores.ts";
import { toldWorkloads } from "./told-workloads.ts";
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
  readonly histories: AgentHistories;
  readonly daemons: Pick<DesiredDaemonService, "wantedBy" | "observed">;
  readonly changes: NodeChanges;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly installationId: string;
  readonly epoch: string;
}

/** Within this time an event came at once: what the two clocks differ by is more than it took. */
const PROMPT_MS = 5000;
/** No daemon holds an event for so long. */
const OLDEST_MS = 90 * 24 * 3_600_000;

/** Takes what daemons say, keeps it, and derives the status from it. The link alone never makes a node `active` (design §4). */
export class NodeReportService {
  readonly #deps: NodeReportDeps;

  constructor(deps: NodeReportDeps) {
    this.#deps = deps;
  }

  /**
   * What the node shall run now.
   * @param daemonProtocol the link's version: what it does not know is left out. The newest if left out. @throws DomainError not_found
   */
  async desiredState(nodeId: string, daemonProtocol: number = Math.max(...PROTOCOL_VERSIONS)): Promise<DesiredState> {
    const { stores, epoch, installationId } = this.#deps;
    // In this order: a generation that is told with an older status is followed by a newer one.
    const desired = await stores.reports.desired(nodeId);
    const node = await stores.nodes.find(nodeId);
    if (!node || !desired) throw nodeNotFound();
    const { generation } = desired;
    const workloads = [...toldWorkloads({ status: node.status, daemonProtocol }, desired.workloads)];
    const daemon = await this.#deps.daemons.wantedBy(node);
    const state = { epoch, installationId, nodeId, projectId: node.projectId, generation, workloads };
    return daemon === null ? state : { ...state, daemon };
  }

  /** @param daemonProtocol the version that both sides agreed on. */
  async hello(nodeId: string, hello: Hello, daemonProtocol: number): Promise<void> {
    await this.#deps.stores.nodes.setDaemonVersion(nodeId, hello.daemonVersion);
    await this.#agreed(nodeId, daemonProtocol);
    await this.#deps.identities.hello(nodeId, hello);
  }

  async heartbeat(nodeId: string): Promise<void> {
    await this.#deps.identities.heartbeat(nodeId);
  }

  /**
   * `POST /v1/nodes/{id}/ready`. Idempotent; a report of an older generation is accepted and ignored, unless the daemon has observed just
   * that under the present one: an update that was rolled back, or is under way.
   */
  async ready(nodeId: string, request: ReadyRequest): Promise<void> {
    const { stores, epoch } = this.#deps;
    const desired = await stores.reports.desired(nodeId);
    const node = await stores.nodes.find(nodeId);
    if (!node || !desired) throw nodeNotFound();
    const { workloadReports } = request;
    const generation = oldestGeneration(workloadReports);
    const isPresent = generation !== null && generation >= desired.generation;
    const isKnown = isPresent || (await this.#isObserved(nodeId, desired.generation, workloadReports));
    // No report at all names no generation: that an agent is gone is told by the link alone, which does.
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
    const complete = tellsOfEngines(toldWorkloads(node, desired.workloads), workloadReports);
    if (complete && waiting.length === 0)
      await this.#deps.status.apply(nodeId, "reported_ready", servingMessage(desired.generation, workloadReports));
    else await this.#notReady(nodeId, waiting);
  }

  /** An observation over the link: it can take `active` away, never give it. Another epoch's is ignored. */
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

  /** What really runs; with nothing running, what ran last. @throws DomainError no_running_engine where nothing ever did */
  async engineVersion(nodeId: string): Promise<string> {
    const report = await this.#deps.stores.reports.report(nodeId);
    if (report && report.lastVersion !== "") return report.lastVersion;
    throw new DomainError("no_running_engine", "This node's engine has not run yet, so it has no version.", {
      retryAfterSeconds: 5,
    });
  }

  async events(nodeId: string, events: readonly NodeEvent[]): Promise<void> {
    const now = this.#deps.clock.now();
    await this.#deps.stores.events.append(
      events.map((event) => ({
        id: this.#deps.ids.next("event"),
        sourceId: `${nodeId}.${event.id}`,
        nodeId,
        at: timeOf(event, now),
        kind: event.kind,
        status: null,
        message: event.message,
      })),
    );
    await this.#deps.histories.take(nodeId, events);
  }

  /** Another version may know other workloads: what it is told then is a generation of its own. */
  async #agreed(nodeId: string, daemonProtocol: number): Promise<void> {
    const seen = await this.#deps.stores.nodes.find(nodeId);
    if (seen === null || seen.daemonProtocol === daemonProtocol) return;
    await this.#deps.stores.transaction(async (stores) => {
      const node = await stores.nodes.findForUpdate(nodeId);
      const desired = await stores.reports.desired(nodeId);
      if (node === null || desired === null) return;
      const [before, after] = [node, { ...node, daemonProtocol }].map((of) => toldWorkloads(of, desired.workloads));
      await stores.nodes.setDaemonProtocol(nodeId, daemonProtocol);
      if (before?.length !== after?.length) await stores.reports.renewDesired(nodeId);
    });
    this.#deps.changes.emit({ nodeId, projectId: seen.projectId, aspect: "status" });
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

  /** Whether this is what the daemon last observed of this generation: an older picture may come late, and says nothing. */
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

  /** An active node that still serves an older generation says why: its update is under way, or was rolled back (design §6). */
  async #tellServing(nodeId: string, { generation, workloadReports }: Observation): Promise<void> {
    const { nodes } = this.#deps.stores;
    const node = await nodes.find(nodeId);
    if (node?.status !== "active") return;
    const message = servingMessage(generation, workloadReports);
    // A note that says more, such as that two daemons share the identity, stands.
    if (message === node.statusMessage || !tellsServing(node.statusMessage, workloadReports)) return;
    await nodes.setStatusMessage(nodeId, message);
    this.#deps.changes.emit({ nodeId, projectId: node.projectId, aspect: "report" });
  }

  async #notReady(nodeId: string, waiting: readonly WorkloadReport[]): Promise<void> {
    const message = waitingMessage(waiting);
    await this.#deps.status.apply(nodeId, "reported_not_ready", message);
    await this.#tellWaiting(nodeId, message, waiting);
  }

  /** A node that is not ready yet says what it waits for now, and not what it waited for first. */
  async #tellWaiting(nodeId: string, message: string, waiting: readonly WorkloadReport[]): Promise<void> {
    const { nodes } = this.#deps.stores;
    const node = await nodes.find(nodeId);
    if (node === null || node.statusMessage === message) return;
    // A note that says more stands.
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

/** One that comes at once has our time; one that waited for the link has its own, where that can be true. */
function timeOf({ at }: NodeEvent, now: number): number {
  const age = now - Date.parse(at);
  return age > PROMPT_MS && age < OLDEST_MS ? now - age : now;
}
