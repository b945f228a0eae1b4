import { WORKLOAD_TYPE_AGENT, type WorkloadSpec } from "@fairlead/protocol/workload";
import type { Container } from "../runtime/container-runtime.ts";
import { typeOf, workloadOf } from "../runtime/ownership.ts";
import type { MissingSecret } from "../secrets/workload-secrets.ts";
import type { Step, StopReason } from "./steps.ts";
import { isUp, type Known, recordOf, viewOf, type WorkloadView } from "./workload-view.ts";

/**
 * `(desired, observed, now) → steps`. Pure, and the only place where choices are made. Every call starts from what is
 * there, so a daemon that died in the middle simply goes on.
 */

export interface PlanInput extends Known {
  /** Requests that a container is answering now. */
  readonly inFlight: (container: Container) => number;
  /** Secrets that a workload waits for. One that runs already is never stopped for them. */
  readonly missingSecrets: (spec: WorkloadSpec) => readonly MissingSecret[];
  /** Monotonic milliseconds. */
  readonly now: number;
}

export interface Plan {
  /** At most one change per workload, and pulls beside them. */
  readonly steps: readonly Step[];
  /** When a wait ends, in monotonic milliseconds; null where only an event can change anything. */
  readonly wakeAt: number | null;
  /** Containers, by id, that finish what they have and get no new requests: they stop next, with nobody to take over. */
  readonly draining: ReadonlySet<string>;
}

/** What to do next about one thing: a step, a wait, or nothing. */
type Next = { readonly step: Step } | { readonly wakeAt: number; readonly draining?: string } | null;

/**
 * A container that no workload wants must have been so for a while: a desired state may be wrong for a moment (gpustack#3346), and an engine
 * takes minutes to come back. An agent leaves by somebody's word, who waits for it, and starts in a moment.
 */
const ORPHAN_GRACE_MS = 10_000;
const graceOf = (container: Container): number => (typeOf(container) === WORKLOAD_TYPE_AGENT ? 0 : ORPHAN_GRACE_MS);
/** No new requests come to a container that is to stop, and it gets this long to finish those that it has. */
const DRAIN_MS = 30_000;
const SWITCH_MS = 1000;

export function plan(input: PlanInput): Plan {
  const nexts = [...planOrphans(input), ...input.desired.workloads.flatMap((spec) => planWorkload(spec, input))];
  const steps = nexts.flatMap((next) => (next !== null && "step" in next ? [next.step] : []));
  const waits = nexts.flatMap((next) => (next !== null && "wakeAt" in next ? [next.wakeAt] : []));
  const draining = nexts.flatMap((next) => (next !== null && "draining" in next ? [next.draining] : []));
  return { steps, wakeAt: waits.length > 0 ? Math.min(...waits) : null, draining: new Set(draining) };
}

function planOrphans({ desired, observed, records, inFlight, now }: PlanInput): Next[] {
  const workloads = new Set(desired.workloads.map((spec) => spec.workloadId));
  return observed.containers
    .filter((container) => !workloads.has(workloadOf(container)))
    .map((container) => {
      const since = recordOf(records, container).unwantedSince ?? now;
      const due = since + graceOf(container);
      if (due > now) return { wakeAt: due };
      // Requests that it still answers may end, as those of one that an update replaces.
      if (inFlight(container) > 0 && since + DRAIN_MS > now)
        return { wakeAt: Math.min(since + DRAIN_MS, now + SWITCH_MS) };
      return discard(container, "orphan");
    });
}

function planWorkload(spec: WorkloadSpec, input: PlanInput): Next[] {
  const view = viewOf(spec, input);
  // Nothing is certain about it (design §6: unknown, never dead).
  if ([view.current, view.former, ...view.leftOver].some((container) => container?.state === "unknown")) return [null];
  const leftOver = view.leftOver.find((container) => container.state !== "removing");
  if (leftOver) return [discard(leftOver, "superseded")];
  if (view.rolledBack) return [planRolledBack(view, input)];
  if (view.current === null) return planMissing(view, input);
  if (!isUp(view.current) && input.missingSecrets(spec).length > 0) return [view.former && keepUp(view.former, input)];
  if (isUp(view.current) && input.health(view.current).state === "ready") return [planSwitch(view, input)];
  return [planComing(view, view.current, input)];
}

/** The wanted container is not there yet; the former one serves meanwhile, also through a long pull. */
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
  const { projectId, generation } = input.desired;
  return [{ step: { type: "create", workloadId: spec.workloadId, name, spec, projectId, generation } }];
}

/** The wanted container is there, but not ready. */
function planComing(view: WorkloadView, current: Container, input: PlanInput): Next {
  const { former, spec } = view;
  if (spec.update === "stop-first" && former !== null && isUp(former)) return planMakeWay(view, former, input);
  const next = keepUp(current, input);
  if (spec.update === "stop-first" || former === null || (next !== null && "step" in next)) return next;
  const beside = keepUp(former, input);
  return beside !== null && "step" in beside ? beside : earlier(next, beside);
}

/** There is no room for both: the old one ends once it answers nobody any more. */
function planMakeWay({ record }: WorkloadView, former: Container, { inFlight, now }: PlanInput): Next {
  const due = (record.seenSince ?? now) + DRAIN_MS;
  if (inFlight(former) === 0 || due <= now) return stop(former, "superseded");
  return { wakeAt: Math.min(due, now + SWITCH_MS), draining: former.id };
}

function earlier(a: Next, b: Next): Next {
  if (a === null || b === null || "step" in a || "step" in b) return a ?? b;
  return a.wakeAt <= b.wakeAt ? a : b;
}

/** The wanted container is ready: requests go there, and the former one may finish what it has. */
function planSwitch({ former, record }: WorkloadView, { inFlight, now }: PlanInput): Next {
  if (former === null) return null;
  if (!isUp(former)) return discard(former, "superseded");
  const readySince = record.readySince ?? now;
  const busy = inFlight(former) > 0;
  const due = readySince + (busy ? DRAIN_MS : SWITCH_MS);
  if (due <= now) return stop(former, "superseded");
  // Looked at again every second, since the end of a request wakes nobody.
  return { wakeAt: busy ? Math.min(due, now + SWITCH_MS) : due };
}

function planRolledBack({ current, former }: WorkloadView, input: PlanInput): Next {
  if (current !== null && isUp(current)) return stop(current, "rolled-back");
  return former === null ? null : keepUp(former, input);
}

/** What keeps one container running and healthy. */
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
  return { workloadId: workloadOf(container), containerId: container.id, name: container.name };
}
