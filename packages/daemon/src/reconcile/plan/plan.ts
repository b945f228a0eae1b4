import { WORKLOAD_TYPE_AGENT, type WorkloadSpec } from "@fairlead/protocol/workload";
import type { Container } from "../../runtime/container-runtime.ts";
import { containerWorkload, networkName, workloadTypeOf } from "../../runtime/ownership.ts";
import type { MissingWorkloadSecret } from "../../secrets/workload-secrets.ts";
import type { Step, StopReason } from "./steps.ts";
import { isUp, type Known, recordOf, viewOf, type WorkloadView } from "./workload-view.ts";

/**
 * `(desired, observed, now) → steps`. Pure, and the only place that makes decisions. Each call starts from the observed
 * state, so a restarted daemon continues where it stopped.
 */

export interface PlanInput extends Known {
  /** Running requests of a container. */
  readonly inFlight: (container: Container) => number;
  /** Secrets that a workload waits for. Running workloads are never stopped because of them. */
  readonly missingSecrets: (spec: WorkloadSpec) => readonly MissingWorkloadSecret[];
  /** Monotonic milliseconds. */
  readonly now: number;
}

export interface ReconcilePlan {
  /** At most one change per workload, plus pulls. */
  readonly steps: readonly Step[];
  /** When to plan again, in monotonic milliseconds; null to wait for an event. */
  readonly wakeAt: number | null;
  /** IDs of containers that finish their requests and get no new ones, because they will be stopped without a successor. */
  readonly draining: ReadonlySet<string>;
}

/** The next action: a step, a wait or nothing. */
type Next = { readonly step: Step } | { readonly wakeAt: number; readonly draining?: string } | null;

/**
 * How long an engine must be unwanted before it is removed: a desired state may be wrong for a moment (gpustack#3346), and an engine
 * takes minutes to start. Agents are removed on a user's request and start quickly.
 */
const ORPHAN_GRACE_MS = 10_000;
const graceOf = (container: Container): number =>
  workloadTypeOf(container) === WORKLOAD_TYPE_AGENT ? 0 : ORPHAN_GRACE_MS;
/** Time for a container to finish its requests before it is stopped. */
const DRAIN_MS = 30_000;
const SWITCH_MS = 1000;

export function plan(input: PlanInput): ReconcilePlan {
  const views = input.desired.workloads.map((spec) => viewOf(spec, input));
  const nexts = [...planOrphans(input), ...views.flatMap((view) => planWorkload(view, input))];
  const changes = nexts.flatMap((next) => (next !== null && "step" in next ? [next.step] : []));
  const steps = [...changes, ...planNetworks(input, changes)];
  const waits = nexts.flatMap((next) => (next !== null && "wakeAt" in next ? [next.wakeAt] : []));
  const draining = nexts.flatMap((next) => (next !== null && "draining" in next ? [next.draining] : []));
  return { steps, wakeAt: waits.length > 0 ? Math.min(...waits) : null, draining: new Set(draining) };
}

function planOrphans({ desired, observed, records, inFlight, now }: PlanInput): Next[] {
  const workloads = new Set(desired.workloads.map((spec) => spec.workloadId));
  return observed.containers
    .filter((container) => !workloads.has(containerWorkload(container)))
    .map((container) => {
      const since = recordOf(records, container).unwantedSince ?? now;
      const due = since + graceOf(container);
      if (due > now) return { wakeAt: due };
      // Let running requests finish, as during an update.
      if (inFlight(container) > 0 && since + DRAIN_MS > now)
        return { wakeAt: Math.min(since + DRAIN_MS, now + SWITCH_MS) };
      return discard(container, "orphan");
    });
}

/** Networks that no workload and no container uses. */
function planNetworks({ desired, observed }: PlanInput, changes: readonly Step[]): Step[] {
  const wanted = new Set(desired.workloads.map((spec) => networkName(desired.nodeId, spec)));
  const used = new Set(observed.containers.map((container) => container.network));
  const busy = new Set(changes.flatMap((step) => (step.type === "pull" ? [] : [step.workloadId])));
  return [...observed.networks.values()]
    .filter(({ name, workloadId }) => !wanted.has(name) && !used.has(name) && !busy.has(workloadId))
    .filter((network, index, all) => all.findIndex(({ workloadId }) => workloadId === network.workloadId) === index)
    .map(({ id, name, workloadId }) => ({ type: "remove-network", workloadId, network: name, networkId: id }));
}

function planWorkload(view: WorkloadView, input: PlanInput): Next[] {
  const { spec } = view;
  // Its state is unknown, which does not mean dead.
  if ([view.current, view.former, ...view.leftOver].some((container) => container?.state === "unknown")) return [null];
  const leftOver = view.leftOver.find((container) => container.state !== "removing");
  if (leftOver) return [discard(leftOver, "superseded")];
  if (view.rolledBack) return [planRolledBack(view, input)];
  if (view.current === null) return planMissing(view, input);
  if (!isUp(view.current) && input.missingSecrets(spec).length > 0) return [view.former && keepUp(view.former, input)];
  if (isUp(view.current) && input.health(view.current).state === "ready") return [planSwitch(view, input)];
  return [planComing(view, view.current, input)];
}

/** The desired container does not exist yet; the former one keeps serving, even during a long pull. */
function planMissing(view: WorkloadView, input: PlanInput): Next[] {
  const { spec, name, record, former } = view;
  const meanwhile = former === null ? null : keepUp(former, input);
  if (input.observed.foreign.has(name)) return [meanwhile];
  const missing = input.missingSecrets(spec);
  if ((input.observed.images.get(spec.image) ?? null) === null) {
    if (missing.some(({ as }) => as === "registry")) return [meanwhile];
    return [{ step: { type: "pull", workloadId: spec.workloadId, image: spec.image, spec } }, meanwhile];
  }
  if (missing.length > 0) return [meanwhile];
  if (record.notBefore > input.now) return [{ wakeAt: record.notBefore }, meanwhile];
  const { nodeId, projectId, generation } = input.desired;
  const network = networkName(nodeId, spec);
  const { internet } = spec.network;
  if (!input.observed.networks.has(network))
    return [{ step: { type: "add-network", workloadId: spec.workloadId, network, internet } }];
  return [{ step: { type: "create", workloadId: spec.workloadId, name, spec, projectId, generation } }];
}

/** The desired container exists but is not ready. */
function planComing(view: WorkloadView, current: Container, input: PlanInput): Next {
  const { former, spec } = view;
  if (spec.update === "stop-first" && former !== null && isUp(former)) return planMakeWay(view, former, input);
  const next = keepUp(current, input);
  if (spec.update === "stop-first" || former === null || (next !== null && "step" in next)) return next;
  const beside = keepUp(former, input);
  return beside !== null && "step" in beside ? beside : earlier(next, beside);
}

/** Only one may run: stop the old one when its requests are finished. */
function planMakeWay({ record }: WorkloadView, former: Container, { inFlight, now }: PlanInput): Next {
  const due = (record.seenSince ?? now) + DRAIN_MS;
  if (inFlight(former) === 0 || due <= now) return stop(former, "superseded");
  return { wakeAt: Math.min(due, now + SWITCH_MS), draining: former.id };
}

function earlier(a: Next, b: Next): Next {
  if (a === null || b === null || "step" in a || "step" in b) return a ?? b;
  return a.wakeAt <= b.wakeAt ? a : b;
}

/** The desired container is ready and gets all requests; the former one finishes its own. */
function planSwitch({ former, record }: WorkloadView, { inFlight, now }: PlanInput): Next {
  if (former === null) return null;
  if (!isUp(former)) return discard(former, "superseded");
  const readySince = record.readySince ?? now;
  const busy = inFlight(former) > 0;
  const due = readySince + (busy ? DRAIN_MS : SWITCH_MS);
  if (due <= now) return stop(former, "superseded");
  // Checked every second, because the end of a request does not wake the loop.
  return { wakeAt: busy ? Math.min(due, now + SWITCH_MS) : due };
}

function planRolledBack({ current, former }: WorkloadView, input: PlanInput): Next {
  if (current !== null && isUp(current)) return stop(current, "rolled-back");
  return former === null ? null : keepUp(former, input);
}

/** Keeps one container running and healthy. */
function keepUp(container: Container, { records, health, now }: PlanInput): Next {
  if (container.state === "removing") return null;
  if (isUp(container)) return health(container).state === "unhealthy" ? stop(container, "unhealthy") : null;
  if (container.state === "dead") return discard(container, "superseded");
  const { notBefore } = recordOf(records, container);
  return notBefore > now ? { wakeAt: notBefore } : { step: { type: "start", ...targetOf(container) } };
}

function discard(container: Container, reason: StopReason): Next {
  if (container.state === "removing" || container.state === "unknown") return null;
  return isUp(container) ? stop(container, reason) : { step: { type: "remove", ...targetOf(container) } };
}

function stop(container: Container, reason: StopReason): Next {
  return { step: { type: "stop", ...targetOf(container), reason } };
}

function targetOf(container: Container): { workloadId: string; containerId: string; name: string } {
  return { workloadId: containerWorkload(container), containerId: container.id, name: container.name };
}
