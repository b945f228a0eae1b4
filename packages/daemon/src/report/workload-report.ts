import type { WorkloadReport, WorkloadSpec, WorkloadState } from "@fairlead/protocol/workload";
import { imageDigest, imageVersion } from "../reconcile/engine-facts.ts";
import type { HealthStatus } from "../reconcile/health.ts";
import type { Snapshot } from "../reconcile/loop.ts";
import type { Observed } from "../reconcile/observe.ts";
import { isUp, recordOf, viewOf, type WorkloadView } from "../reconcile/workload-view.ts";
import type { Container } from "../runtime/container-runtime.ts";
import { generationOf } from "../runtime/ownership.ts";
import { describeMissing } from "../secrets/workload-secrets.ts";

/** What the loop knows, as the reports that the control plane takes. Pure. */

export function buildReports(snapshot: Snapshot): WorkloadReport[] {
  return snapshot.desired.workloads.map((spec) => {
    const { observed } = snapshot;
    return observed === null
      ? unseen(spec, snapshot)
      : report(viewOf(spec, { ...snapshot, observed }), { snapshot, observed });
  });
}

interface Context {
  readonly snapshot: Snapshot;
  readonly observed: Observed;
}

/** Before the container engine has answered for the first time. */
function unseen(spec: WorkloadSpec, { desired, away }: Snapshot): WorkloadReport {
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
    // The newest generation that asks for just this container.
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

function stepTypes({ spec }: WorkloadView, { running }: Snapshot): Set<string> {
  const own = running.filter(
    (step) => step.workloadId === spec.workloadId || (step.type === "pull" && step.image === spec.image),
  );
  return new Set(own.map((step) => step.type));
}

function failuresOf({ spec }: WorkloadView, snapshot: Snapshot): readonly string[] {
  return snapshot.failures(spec.workloadId, spec.image);
}

/** What a person should know: why it is not ready, or why it is not what was asked for. */
function messageOf(view: WorkloadView, context: Context): string {
  const { snapshot, observed } = context;
  const { spec, current, serving, record, rolledBack } = view;
  if (snapshot.away !== null) return `the container engine cannot be asked: ${snapshot.away}`;
  const update = `the update to generation ${snapshot.desired.generation}`;
  if (rolledBack) return `${update} was rolled back: ${record.lastExit?.reason ?? "it did not become ready"}`;
  const reasons: string[] = [];
  if (serving !== null && serving === view.former) reasons.push(`${update} is under way`);
  if (observed.foreign.has(view.name)) {
    reasons.push(`a container that is not Fairlead's holds the name ${view.name}; remove or rename it`);
  }
  const percent = snapshot.pulls.get(spec.image);
  if (percent !== undefined) reasons.push(`pulling ${spec.image}: ${percent} %`);
  const missing = snapshot.missingSecrets(spec);
  if (missing.length > 0) reasons.push(describeMissing(missing));
  reasons.push(...failuresOf(view, snapshot));
  if (current !== null) reasons.push(...whyNotReady(current, snapshot));
  else if (record.lastExit !== null) reasons.push(record.lastExit.reason);
  return reasons.join("; ").slice(0, 1024);
}

function whyNotReady(current: Container, snapshot: Snapshot): string[] {
  if (!isUp(current)) {
    const { lastExit, failures } = recordOf(snapshot.records, current);
    return lastExit === null ? [] : [`ended: ${lastExit.reason} (${failures} in a row)`];
  }
  if (current.state === "paused") return ["somebody has paused its container; it goes on once that is undone"];
  const { state, detail } = snapshot.health(current);
  return state === "ready" || detail === "" ? [] : [`not ready: ${detail}`];
}
