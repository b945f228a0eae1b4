import type { DesiredState, WorkloadSpec } from "@fairlead/protocol/workload";
import type { Container } from "../runtime/container-runtime.ts";
import { containerName, generationOf, specHashOf, workloadOf } from "../runtime/ownership.ts";
import type { HealthOf } from "./health.ts";
import type { Observed } from "./observe.ts";
import { NO_RUNS, type RunRecord, type RunRecords } from "./run-record.ts";

/** All that is known when a decision is made. */
export interface Known {
  readonly desired: DesiredState;
  readonly observed: Observed;
  readonly records: RunRecords;
  readonly health: HealthOf;
}

/** One workload's containers, sorted by the part that each plays. */
export interface WorkloadView {
  readonly spec: WorkloadSpec;
  /** The name that the wanted spec's container has. */
  readonly name: string;
  readonly record: RunRecord;
  /** Of the wanted spec. */
  readonly current: Container | null;
  /** Of an older spec: serves until the current one is ready, and again if that never happens. */
  readonly former: Container | null;
  /** Of no use any more. */
  readonly leftOver: readonly Container[];
  /** Where requests go. */
  readonly serving: Container | null;
  /** The wanted container did not become ready: the former one keeps its place, or has it back (design §6). */
  readonly rolledBack: boolean;
}

/** Failed runs until an update is given up. Where nobody waits for it, a new one may have another try. */
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
  const own = observed.containers.filter((container) => workloadOf(container) === spec.workloadId);
  const current = own.find((container) => container.name === name && specHashOf(container) === spec.specHash) ?? null;
  const others = own
    .filter((container) => container !== current)
    .toSorted((a, b) => worth(b, known) - worth(a, known) || generationOf(b) - generationOf(a));
  // One that holds the wanted name with another spec is in the way.
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
    leftOver: others.filter((container) => container !== former),
    serving: !ready(current) && ready(former) ? former : (current ?? former),
    rolledBack,
  };
}

/** A former container that has itself never worked is nothing to go back to. */
function isWorthy(container: Container, records: RunRecords): boolean {
  const record = recordOf(records, container);
  return record.everReady || record.failures === 0;
}

function worth(container: Container, { records, health }: Known): number {
  if (isUp(container)) return health(container).state === "ready" ? 3 : 2;
  return recordOf(records, container).everReady ? 1 : 0;
}
