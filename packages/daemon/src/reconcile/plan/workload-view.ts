import type { DesiredState, WorkloadSpec } from "@fairlead/protocol/workload";
import type { Container } from "../../runtime/container-runtime.ts";
import { containerName, containerWorkload, generationOf, specHashOf } from "../../runtime/ownership.ts";
import type { HealthOf } from "../health.ts";
import type { Observed } from "../observe.ts";
import { NO_RUNS, type RunRecord, type RunRecords } from "./run-record.ts";

/** The input of a decision. */
export interface Known {
  readonly desired: DesiredState;
  readonly observed: Observed;
  readonly records: RunRecords;
  readonly health: HealthOf;
}

/** A workload's containers by role. */
export interface WorkloadView {
  readonly spec: WorkloadSpec;
  /** Container name of the desired spec. */
  readonly name: string;
  readonly record: RunRecord;
  /** Container of the desired spec. */
  readonly current: Container | null;
  /** Container of an older spec: serves until the current one is ready, and after a rollback. */
  readonly former: Container | null;
  /** To be removed. */
  readonly leftOver: readonly Container[];
  /** Gets the requests. */
  readonly serving: Container | null;
  /** The desired container did not become ready, so the former one serves. */
  readonly rolledBack: boolean;
}

/** Failed runs until an update is rolled back. */
const TRIES: Readonly<Record<WorkloadSpec["update"], number>> = { "stop-first": 1, "start-first": 3 };

export function isUp(container: Container): boolean {
  return container.state === "running" || container.state === "paused" || container.state === "restarting";
}

export function recordOf(records: RunRecords, container: Container): RunRecord {
  return records.get(container.name) ?? NO_RUNS;
}

export function viewOf(spec: WorkloadSpec, known: Known): WorkloadView {
  const { desired, observed, records, health } = known;
  const name = containerName(desired.nodeId, spec);
  const own = observed.containers.filter((container) => containerWorkload(container) === spec.workloadId);
  // A container without its network cannot be restarted.
  const lost = own.filter((container) => hasLostNetwork(container, known));
  const whole = own.filter((container) => !lost.includes(container));
  const current = whole.find((container) => container.name === name && specHashOf(container) === spec.specHash) ?? null;
  const others = whole
    .filter((container) => container !== current)
    .toSorted((a, b) => worth(b, known) - worth(a, known) || generationOf(b) - generationOf(a));
  // A container with the desired name but another spec is in the way.
  const former = others.find((container) => container.state !== "removing" && container.name !== name) ?? null;
  const record = records.get(name) ?? NO_RUNS;
  const failed = !record.everReady && record.failures >= TRIES[spec.update];
  const rolledBack = failed && former !== null && isWorthy(former, records);
  const ready = (container: Container | null): boolean =>
    container !== null && isUp(container) && health(container).state === "ready";
  return {
    spec,
    name,
    record,
    current,
    former,
    leftOver: [...lost, ...others.filter((container) => container !== former)],
    serving: !ready(current) && ready(former) ? former : (current ?? former),
    rolledBack,
  };
}

function hasLostNetwork(container: Container, { observed }: Known): boolean {
  return !observed.networks.has(container.network) && !isUp(container) && container.state !== "unknown";
}

/** Roll back only to a container that has worked. */
function isWorthy(container: Container, records: RunRecords): boolean {
  const record = recordOf(records, container);
  return record.everReady || record.failures === 0;
}

function worth(container: Container, { records, health }: Known): number {
  if (isUp(container)) return health(container).state === "ready" ? 3 : 2;
  return recordOf(records, container).everReady ? 1 : 0;
}
