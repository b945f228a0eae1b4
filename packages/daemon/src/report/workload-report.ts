import {
  WORKLOAD_TYPE_AGENT,
  type WorkloadReport,
  type WorkloadSpec,
  type WorkloadState,
} from "@fairlead/protocol/workload";
import { imageDigest, imageVersion } from "../reconcile/engine-facts.ts";
import type { HealthStatus } from "../reconcile/health.ts";
import type { Snapshot } from "../reconcile/loop.ts";
import type { Observed } from "../reconcile/observe.ts";
import { keyOf, pullKeyOf } from "../reconcile/steps.ts";
import { isUp, recordOf, viewOf, type WorkloadView } from "../reconcile/workload-view.ts";
import type { Container } from "../runtime/container-runtime.ts";
import { generationOf, typeOf, workloadOf } from "../runtime/ownership.ts";
import { describeMissing } from "../secrets/workload-secrets.ts";

const MAX_MESSAGE = 1024;

/** What the loop knows, as the reports that the control plane takes. Pure. */

/**
 * One for each workload that is wanted, and one for each agent that still leaves: only once nothing says a word of an agent is it gone
 * from here, and may run elsewhere.
 * @param left agents of former desired states that may still run: told of until the container engine has shown what there is
 */
export function buildReports(snapshot: Snapshot, left: ReadonlySet<string> = new Set()): WorkloadReport[] {
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

/** @returns the ids of agents of which there is a container that nothing asks for any more. */
export function leavingAgentIds({ desired, observed }: Pick<Snapshot, "desired" | "observed">): ReadonlySet<string> {
  const wanted = new Set(desired.workloads.map((spec) => spec.workloadId));
  const leaving = (observed?.containers ?? []).filter((container) => typeOf(container) === WORKLOAD_TYPE_AGENT);
  return new Set(leaving.map(workloadOf).filter((workloadId) => !wanted.has(workloadId)));
}

interface Context {
  readonly snapshot: Snapshot;
  readonly observed: Observed;
}

function leavingAgents({ snapshot, observed }: Context): WorkloadReport[] {
  return [...leavingAgentIds(snapshot)].flatMap((workloadId) => {
    const containers = observed.containers.filter((container) => workloadOf(container) === workloadId);
    const container = containers.find(isUp) ?? containers[0];
    if (container === undefined) return [];
    const { restarts, lastExit } = recordOf(snapshot.records, container);
    const away = snapshot.away === null ? [] : [`the container engine cannot be asked: ${snapshot.away}`];
    return {
      ...unseen({ workloadId, workloadType: WORKLOAD_TYPE_AGENT, image: container.image }, snapshot),
      state: snapshot.away === null ? "stopping" : "unknown",
      imageDigest: imageDigest(container.image, observed.images.get(container.imageId) ?? null),
      startedAt: container.startedAt,
      restartCount: restarts,
      lastExit,
      message: [...away, ...snapshot.failures(workloadId, null)].join("; ").slice(0, MAX_MESSAGE),
    };
  });
}

/** Before the container engine has answered for the first time. */
function unseen(
  spec: Pick<WorkloadSpec, "workloadId" | "workloadType" | "image">,
  { desired, away }: Pick<Snapshot, "desired" | "away">,
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
  const own = running.filter((step) => step.workloadId === spec.workloadId || keyOf(step) === pullKeyOf(spec));
  return new Set(own.map((step) => step.type));
}

function failuresOf({ spec }: WorkloadView, snapshot: Snapshot): readonly string[] {
  return snapshot.failures(spec.workloadId, pullKeyOf(spec));
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
  return reasons.join("; ").slice(0, MAX_MESSAGE);
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
