import {
  WORKLOAD_TYPE_AGENT,
  WORKLOAD_TYPE_ENGINE,
  type WorkloadReport,
  type WorkloadSpec,
  type WorkloadState,
} from "@fairlead/protocol/workload";
import { imageDigest, imageVersion } from "../reconcile/engine-facts.ts";
import type { HealthStatus } from "../reconcile/health.ts";
import type { LoopSnapshot } from "../reconcile/loop.ts";
import type { Observed } from "../reconcile/observe.ts";
import { exitedText } from "../reconcile/plan/exit-words.ts";
import type { RunRecord } from "../reconcile/plan/run-record.ts";
import { keyOf, pullKeyOf } from "../reconcile/plan/steps.ts";
import { isUp, recordOf, viewOf, type WorkloadView } from "../reconcile/plan/workload-view.ts";
import type { Container } from "../runtime/container-runtime.ts";
import { containerWorkload, generationOf, workloadTypeOf } from "../runtime/ownership.ts";
import { describeMissing } from "../secrets/workload-secrets.ts";
import { boundReports } from "./bound-reports.ts";

/** Builds the control plane's reports from a snapshot of the loop. Pure. */

/**
 * One report per desired workload and per agent that is being removed: only an agent without a report is gone
 * from this node and may run elsewhere.
 * @param left agents of former desired states that may still run, reported until the container engine has been listed
 */
export function buildReports(snapshot: LoopSnapshot, left: ReadonlySet<string> = new Set()): WorkloadReport[] {
  return boundReports(allReports(snapshot, left));
}

function allReports(snapshot: LoopSnapshot, left: ReadonlySet<string>): WorkloadReport[] {
  const { observed, desired } = snapshot;
  if (observed === null) {
    const leaving = [...left].map(
      (workloadId) => ({ workloadId, workloadType: WORKLOAD_TYPE_AGENT, image: "" }) as const,
    );
    return [...desired.workloads, ...leaving].map((workload) => unseen(workload, snapshot));
  }
  const wanted = desired.workloads.map((spec) =>
    report(viewOf(spec, { ...snapshot, observed }), { snapshot, observed }),
  );
  return [...wanted, ...leavingAgents({ snapshot, observed })];
}

/** @returns IDs of agents that still have a container but are no longer desired. */
export function leavingAgentIds({
  desired,
  observed,
}: Pick<LoopSnapshot, "desired" | "observed">): ReadonlySet<string> {
  const wanted = new Set(desired.workloads.map((spec) => spec.workloadId));
  const leaving = (observed?.containers ?? []).filter((container) => workloadTypeOf(container) === WORKLOAD_TYPE_AGENT);
  return new Set(leaving.map(containerWorkload).filter((workloadId) => !wanted.has(workloadId)));
}

interface Context {
  readonly snapshot: LoopSnapshot;
  readonly observed: Observed;
}

function leavingAgents({ snapshot, observed }: Context): WorkloadReport[] {
  return [...leavingAgentIds(snapshot)].flatMap((workloadId) => {
    const containers = observed.containers.filter((container) => containerWorkload(container) === workloadId);
    const container = containers.find(isUp) ?? containers[0];
    if (container === undefined) return [];
    const { restarts, lastExit } = recordOf(snapshot.records, container);
    const away = snapshot.away === null ? [] : [`the container engine does not respond: ${snapshot.away}`];
    return {
      ...unseen({ workloadId, workloadType: WORKLOAD_TYPE_AGENT, image: container.image }, snapshot),
      state: snapshot.away === null ? "stopping" : "unknown",
      imageDigest: imageDigest(container.image, observed.images.get(container.imageId) ?? null),
      startedAt: container.startedAt,
      restartCount: restarts,
      lastExit,
      message: [...away, ...snapshot.failures(workloadId, null)].join("; "),
    };
  });
}

/** Report before the first observation. */
function unseen(
  spec: Pick<WorkloadSpec, "workloadId" | "workloadType" | "image">,
  { desired, away }: Pick<LoopSnapshot, "desired" | "away">,
): WorkloadReport {
  return {
    workloadId: spec.workloadId,
    workloadType: spec.workloadType,
    ready: false,
    state: away === null ? "pending" : "unknown",
    version: "",
    image: spec.image,
    imageDigest: "",
    generation: desired.generation,
    models: [],
    startedAt: null,
    restartCount: 0,
    lastExit: null,
    message: away ?? "",
  };
}

function report(view: WorkloadView, context: Context): WorkloadReport {
  const { spec, serving } = view;
  const { snapshot, observed } = context;
  const health = serving === null ? null : snapshot.health(serving);
  const facts = observed.images.get(serving?.imageId ?? spec.image) ?? null;
  const image = serving?.image ?? spec.image;
  const record = serving === null ? view.record : recordOf(snapshot.records, serving);
  const told = health?.version ?? "";
  return {
    workloadId: spec.workloadId,
    workloadType: spec.workloadType,
    ready: isServing(serving, health),
    state: stateOf(view, context),
    version: told !== "" || serving === null ? told : imageVersion(image, facts),
    image,
    imageDigest: imageDigest(image, facts),
    // The newest generation that this container satisfies.
    generation: serving === null || serving === view.current ? snapshot.desired.generation : generationOf(serving),
    models: [...(health?.models ?? [])],
    startedAt: serving?.startedAt ?? null,
    restartCount: record.restarts,
    lastExit: record.lastExit,
    message: messageOf(view, context),
    progress: snapshot.pulls.get(spec.image) ?? null,
  };
}

function isServing(container: Container | null, health: HealthStatus | null): boolean {
  return container !== null && isUp(container) && health?.state === "ready";
}

function stateOf(view: WorkloadView, context: Context): WorkloadState {
  const { serving } = view;
  const { snapshot } = context;
  if (snapshot.away !== null || serving?.state === "unknown") return "unknown";
  if (serving === null) return absentState(view, context);
  const health = snapshot.health(serving);
  if (isServing(serving, health)) return "running";
  if (stepTypes(view, snapshot).has("stop")) return "stopping";
  if (isUp(serving)) return health.state === "starting" ? "starting" : "running";
  return recordOf(snapshot.records, serving).notBefore > snapshot.now ? "backing-off" : "starting";
}

function absentState(view: WorkloadView, { snapshot, observed }: Context): WorkloadState {
  if (observed.foreign.has(view.name)) return "failed";
  if (stepTypes(view, snapshot).has("pull")) return "pulling";
  const waits = view.record.notBefore > snapshot.now || failuresOf(view, snapshot).length > 0;
  return waits ? "backing-off" : "pending";
}

function stepTypes({ spec }: WorkloadView, { running }: LoopSnapshot): Set<string> {
  const own = running.filter((step) => step.workloadId === spec.workloadId || keyOf(step) === pullKeyOf(spec));
  return new Set(own.map((step) => step.type));
}

function failuresOf({ spec }: WorkloadView, snapshot: LoopSnapshot): readonly string[] {
  return snapshot.failures(spec.workloadId, pullKeyOf(spec));
}

/** Why the workload is not ready, or differs from the desired state. */
function messageOf(view: WorkloadView, context: Context): string {
  const { snapshot, observed } = context;
  const { spec, current, serving, record, rolledBack } = view;
  if (snapshot.away !== null) return `the container engine does not respond: ${snapshot.away}`;
  const update = `the update (generation ${snapshot.desired.generation})`;
  if (rolledBack) return `${update} failed and was undone: ${record.lastExit?.reason ?? "did not become ready"}`;
  const reasons: string[] = [];
  const isUpdate = serving !== null && serving === view.former;
  if (isUpdate) reasons.push(`${update} is in progress`);
  if (observed.foreign.has(view.name)) {
    reasons.push(`another container uses the name ${view.name}; remove or rename it`);
  }
  const percent = snapshot.pulls.get(spec.image);
  if (percent !== undefined) reasons.push(`pulling ${spec.image}: ${percent} %`);
  const missing = snapshot.missingSecrets(spec);
  if (missing.length > 0) reasons.push(describeMissing(missing));
  const noWay = snapshot.noWay(spec.workloadId);
  if (noWay !== null) reasons.push(`cannot reach the platform: ${noWay}`);
  reasons.push(...failuresOf(view, snapshot));
  if (current !== null) reasons.push(...whyNotReady(current, snapshot));
  else if (record.lastExit !== null) reasons.push(notCreated(record));
  if (isUpdate && (failuresOf(view, snapshot).length > 0 || record.failures > 0)) {
    reasons.push(`to cancel the update, ${howToCancel(view, serving, snapshot)}`);
  }
  return reasons.join("; ");
}

function notCreated({ lastExit, failures }: RunRecord): string {
  return failures === 0 ? (lastExit?.reason ?? "") : `${lastExit?.reason} (${attempts(failures)})`;
}

function attempts(count: number): string {
  return count === 1 ? "1 attempt" : `${count} attempts`;
}

/** How to return to the spec of the serving container. */
function howToCancel({ spec }: WorkloadView, serving: Container, { desired }: LoopSnapshot): string {
  if (serving.image === spec.image) return "undo the config change";
  if (spec.workloadType !== WORKLOAD_TYPE_ENGINE) return `set its image back to ${serving.image}`;
  return `set the image back: fairlead node update ${desired.nodeId} --image ${serving.image}`;
}

function whyNotReady(current: Container, snapshot: LoopSnapshot): string[] {
  if (!isUp(current)) {
    const { lastExit, failures, countedRun } = recordOf(snapshot.records, current);
    if (lastExit === null) return [];
    if (current.startedAt === null || countedRun === null)
      return [`cannot start: ${lastExit.reason} (${attempts(failures)})`];
    return [exitedText(lastExit.reason, failures)];
  }
  if (current.state === "paused") return ["its container is paused; unpause it to continue"];
  const { state, detail, exhausted } = snapshot.health(current);
  if (state === "ready" || detail === "") return exhausted === undefined ? [] : [exhausted];
  return [state === "starting" ? detail : `not ready: ${detail}`];
}
