import { ceiling } from "@fairlead/protocol/values/backoff";
import type { DesiredState, LastExit } from "@fairlead/protocol/workload";
import type { Container } from "../../runtime/container-runtime.ts";
import { containerName, containerWorkload } from "../../runtime/ownership.ts";
import type { HealthOf } from "../health.ts";
import type { Observed } from "../observe.ts";
import { exitWords } from "./exit-words.ts";
import type { StopReason } from "./steps.ts";

/** History of the runs of one container name. Times are monotonic milliseconds. Pure. */
export interface RunRecord {
  /** Failed runs in a row. */
  readonly failures: number;
  /** Earliest time of the next start. */
  readonly notBefore: number;
  readonly restarts: number;
  readonly lastExit: LastExit | null;
  /** `startedAt` of the last run whose end was counted. */
  readonly countedRun: string | null;
  /** When the container was first observed, running or not. */
  readonly seenSince: number | null;
  readonly readySince: number | null;
  readonly everReady: boolean;
  /** The resource that the current run exhausted. */
  readonly exhausted: string | null;
  /** Why the daemon is stopping it, or null. */
  readonly stopping: { readonly reason: StopReason; readonly detail: string } | null;
  /** Since when it is unwanted. */
  readonly unwantedSince: number | null;
}

export type RunRecords = ReadonlyMap<string, RunRecord>;

export const NO_RUNS: RunRecord = {
  failures: 0,
  notBefore: 0,
  restarts: 0,
  lastExit: null,
  countedRun: null,
  seenSince: null,
  readySince: null,
  everReady: false,
  exhausted: null,
  stopping: null,
  unwantedSince: null,
};

const CRASH_BACKOFF = { baseMs: 10_000, maxMs: 300_000 };
/** A run that is ready for this long is stable and resets earlier failures. */
export const STABLE_MS = 300_000;

/** The first failure after a stable run restarts immediately; then the delay is 10 s × 2ⁿ, at most 5 min. */
export function crashDelay(failures: number): number {
  return failures <= 1 ? 0 : ceiling(CRASH_BACKOFF, failures - 2);
}

export interface RunEnd {
  readonly container: Container;
  readonly record: RunRecord;
}

export interface RecordInput {
  readonly desired: DesiredState;
  readonly observed: Observed;
  readonly health: HealthOf;
  /** Monotonic milliseconds. */
  readonly now: number;
  /** RFC 3339. */
  readonly time: string;
}

/** Updates the records from an observation. @returns also the runs that failed since the last one. */
export function updateRecords(records: RunRecords, input: RecordInput): { records: RunRecords; ends: RunEnd[] } {
  const { desired, observed } = input;
  const workloads = new Set(desired.workloads.map((spec) => spec.workloadId));
  const next = new Map<string, RunRecord>();
  const ends: RunEnd[] = [];
  for (const spec of desired.workloads) {
    // Kept without a container, so that a spec that cannot be created keeps its backoff.
    const name = containerName(desired.nodeId, spec);
    const record = records.get(name);
    if (record) next.set(name, record);
  }
  for (const container of observed.containers) {
    const before = records.get(container.name) ?? NO_RUNS;
    const unwantedSince = workloads.has(containerWorkload(container)) ? null : (before.unwantedSince ?? input.now);
    const seenSince = before.seenSince ?? input.now;
    const after = { ...afterObservation(before, container, input), seenSince, unwantedSince };
    next.set(container.name, after);
    if (after.failures > before.failures || after.lastExit !== before.lastExit) ends.push({ container, record: after });
  }
  return { records: next, ends };
}

function afterObservation(record: RunRecord, container: Container, input: RecordInput): RunRecord {
  if (container.state === "running") return whileRunning(record, container, input);
  const { startedAt } = container;
  // An earlier daemon failed to start it; only the container engine knows.
  if (container.state === "created" && container.error !== "" && record.failures === 0)
    return refusedStart(record, { message: container.error, now: input.now, time: input.time });
  const ended = container.state === "exited" || container.state === "dead";
  if (!ended || startedAt === null || startedAt === record.countedRun) return record;
  const closed = { ...record, countedRun: startedAt, readySince: null, exhausted: null, stopping: null };
  const wanted = record.stopping !== null && record.stopping.reason !== "unhealthy";
  return wanted ? closed : withFailure(closed, { exit: exitOf(record, container, input.time), record, now: input.now });
}

function whileRunning(before: RunRecord, container: Container, { health, now }: RecordInput): RunRecord {
  const { state, exhausted = null } = health(container);
  const record = { ...before, exhausted };
  if (state !== "ready") return { ...record, readySince: null };
  const readySince = record.readySince ?? now;
  const stable = now - readySince >= STABLE_MS;
  return { ...record, readySince, everReady: true, ...(stable ? { failures: 0, notBefore: 0 } : {}) };
}

function withFailure(closed: RunRecord, end: { exit: LastExit; record: RunRecord; now: number }): RunRecord {
  const { readySince } = end.record;
  const wasStable = readySince !== null && end.now - readySince >= STABLE_MS;
  const failures = wasStable ? 1 : closed.failures + 1;
  return { ...closed, failures, notBefore: end.now + crashDelay(failures), lastExit: end.exit };
}

function exitOf(record: RunRecord, container: Container, time: string): LastExit {
  const { exitCode, outOfMemory, error, finishedAt } = container;
  const ended = outOfMemory ? "out of memory" : error || exitWords(exitCode);
  const reason = record.stopping?.detail ?? [ended, record.exhausted].filter(Boolean).join("; ");
  return { code: exitCode, reason, at: finishedAt ?? time };
}

/**
 * The container engine is back. Failures during the outage do not count for containers that had worked:
 * they restart without delay. A failed update stays failed.
 */
export function pardoned(records: RunRecords): RunRecords {
  return new Map(
    [...records].map(([name, record]) => [name, record.everReady ? { ...record, failures: 0, notBefore: 0 } : record]),
  );
}

/** A rejected create or start counts as a failed run. */
export function refusedStart(record: RunRecord, refusal: { message: string; now: number; time: string }): RunRecord {
  const failures = record.failures + 1;
  const lastExit = { code: 127, reason: refusal.message, at: refusal.time };
  // Unlike a crash, an immediate retry is unlikely to help.
  return { ...record, failures, notBefore: refusal.now + crashDelay(failures + 1), lastExit };
}
