import { type Clock, rfc3339 } from "@fairlead/protocol/values/clock";
import type { DesiredState } from "@fairlead/protocol/workload";
import { type DaemonLog, reasonOf } from "../process/log.ts";
import { sleep, type Timers } from "../process/timers.ts";
import { type Container, type ContainerRuntime, type Owner, RuntimeError } from "../runtime/container-runtime.ts";
import { containerWorkload, probeSettingsOf } from "../runtime/ownership.ts";
import type { WorkloadSecrets } from "../secrets/workload-secrets.ts";
import { execute, type NetworkRules, type PullPorts } from "./execute.ts";
import type { HealthMonitor, HealthOf, ProbeTarget } from "./health.ts";
import { type Observed, observe } from "./observe.ts";
import { exitedText } from "./plan/exit-words.ts";
import { plan } from "./plan/plan.ts";
import {
  NO_RUNS,
  pardoned,
  type RunEnd,
  type RunRecord,
  type RunRecords,
  refusedStart,
  updateRecords,
} from "./plan/run-record.ts";
import { eventOf, newlyReady } from "./plan/step-events.ts";
import { StepRetries } from "./plan/step-retries.ts";
import { describe, keyOf, type Step } from "./plan/steps.ts";
import { type Known, viewOf } from "./plan/workload-view.ts";

/**
 * The reconcile loop. Its invariants:
 * - One round at a time: observe, plan, start the steps. A wake during a round triggers one more round.
 * - One change at a time per workload. An observation that started during a change is not used to plan that workload.
 * - While the container engine does not respond, nothing is planned and the last snapshot is kept (nomad#1859).
 * - Without a desired state nothing is changed. Only containers with both owner labels are ever changed.
 * - Events and probes only wake the loop; it also relists periodically (go-dockerclient#163).
 * - Closing it does not change workloads.
 */

export interface LoopDeps {
  readonly runtime: ContainerRuntime;
  readonly owner: Owner;
  readonly health: Pick<HealthMonitor, "track" | "statusOf" | "pardon">;
  readonly inFlight: (container: Container) => number;
  readonly secrets: WorkloadSecrets;
  readonly pulls: PullPorts;
  readonly networkRules: NetworkRules;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: DaemonLog;
  readonly onEvent: (kind: string, workloadId: string | null, message: string) => void;
  /** Called with each new snapshot. */
  readonly onSnapshot: (snapshot: LoopSnapshot) => void;
}

/** The loop's state, for reports and routing. */
export interface LoopSnapshot {
  readonly desired: DesiredState;
  /** The last observation; null before the first one. */
  readonly observed: Observed | null;
  /** Why the container engine does not respond, or null. */
  readonly away: string | null;
  readonly records: RunRecords;
  readonly health: HealthOf;
  readonly running: readonly Step[];
  /** IDs of containers that get no new requests. */
  readonly draining: ReadonlySet<string>;
  /** Percent by image. */
  readonly pulls: ReadonlyMap<string, number>;
  readonly failures: (workloadId: string, pullKey: string | null) => readonly string[];
  readonly missingSecrets: WorkloadSecrets["missing"];
  readonly noWay: NetworkRules["noWay"];
  /** Monotonic milliseconds. */
  readonly now: number;
}

interface Operation {
  readonly step: Step;
  readonly cancel: AbortController;
  readonly ended: Promise<void>;
}

const RELIST_MS = 30_000;
const AWAY_RETRY_MS = 2000;
/** One list covers a burst of events. */
const HINT_MS = 100;
const CLOSE_MS = 5000;
/** A round makes a few Docker calls of at most 10 s each. */
const STUCK_MS = 5 * 60_000;
/** Docker sends pull progress many times per second. */
const PROGRESS_MS = 1000;

export class ReconcileLoop {
  readonly #deps: LoopDeps;
  readonly #operations = new Map<string, Operation>();
  readonly #retries = new StepRetries();
  readonly #pulls = new Map<string, number>();
  readonly #closing = new AbortController();
  #desired: DesiredState | null = null;
  #records: RunRecords = new Map();
  #observed: Observed | null = null;
  #away: string | null = null;
  #draining: ReadonlySet<string> = new Set();
  #rolledBack: ReadonlySet<string> = new Set();
  #dirty = false;
  #rounds: Promise<void> | null = null;
  #cancelTimer: () => void = () => undefined;
  #hinted = false;
  #progressTold = Number.NEGATIVE_INFINITY;
  #roundEnded: number;

  constructor(deps: LoopDeps) {
    this.#deps = deps;
    this.#roundEnded = deps.clock.monotonic();
  }

  start(desired: DesiredState | null): void {
    this.#desired = desired;
    const { runtime, owner } = this.#deps;
    runtime.watch(owner, () => this.hint(), this.#closing.signal);
    this.wake();
  }

  desiredChanged(desired: DesiredState): void {
    this.#desired = desired;
    // The user may have fixed the cause, such as a registry login, and is waiting.
    this.#retries.forgetAll();
    this.wake();
  }

  /** Schedules a round soon. */
  hint(): void {
    if (this.#hinted) return;
    this.#hinted = true;
    this.#deps.timers.after(HINT_MS, () => {
      this.#hinted = false;
      this.wake();
    });
  }

  /** Runs a round now. */
  wake(): void {
    this.#dirty = true;
    if (this.#closing.signal.aborted || this.#rounds !== null) return;
    this.#rounds = this.#runRounds().finally(() => {
      this.#rounds = null;
      if (this.#dirty) this.wake();
    });
  }

  /** Whether rounds finish, even if they fail. Steps such as slow pulls do not count. */
  getsOn(): boolean {
    return this.#deps.clock.monotonic() - this.#roundEnded < STUCK_MS;
  }

  /** Stops the loop: cancels pulls, waits a few seconds for other steps, leaves workloads running. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#dirty = false;
    this.#cancelTimer();
    for (const { cancel } of this.#operations.values()) cancel.abort();
    const ended = Promise.all([this.#rounds, ...[...this.#operations.values()].map((operation) => operation.ended)]);
    const done = new AbortController();
    await Promise.race([ended.finally(() => done.abort()), sleep(this.#deps.timers, CLOSE_MS, done.signal)]);
  }

  async #runRounds(): Promise<void> {
    while (this.#dirty && !this.#closing.signal.aborted) {
      this.#dirty = false;
      const wakeAt = await this.#round().catch((error: unknown) => {
        this.#deps.log.error({ reason: reasonOf(error) }, "reconcile round failed");
        return null;
      });
      this.#roundEnded = this.#deps.clock.monotonic();
      this.#schedule(wakeAt);
    }
  }

  #schedule(wakeAt: number | null): void {
    this.#cancelTimer();
    if (this.#closing.signal.aborted) return;
    const relist = this.#away === null ? RELIST_MS : AWAY_RETRY_MS;
    const delay = wakeAt === null ? relist : Math.min(relist, wakeAt - this.#deps.clock.monotonic());
    this.#cancelTimer = this.#deps.timers.after(Math.max(0, delay), () => this.wake());
  }

  /** @returns when the next round is due, apart from the periodic relist. */
  async #round(): Promise<number | null> {
    const desired = this.#desired;
    if (desired === null) return null;
    const busy = new Set(this.#operations.keys());
    const observed = await this.#observe(desired);
    if (observed === null || this.#closing.signal.aborted) return null;
    this.#learn(desired, observed);
    const now = this.#deps.clock.monotonic();
    const { statusOf } = this.#deps.health;
    const planned = plan({
      desired,
      observed,
      records: this.#records,
      health: statusOf,
      inFlight: this.#deps.inFlight,
      missingSecrets: this.#missingSecrets,
      now,
    });
    this.#draining = planned.draining;
    this.#retries.keepOnly(planned.steps);
    this.#cancelUnwantedPulls(planned.steps);
    let wakeAt = planned.wakeAt;
    for (const step of planned.steps) {
      if (busy.has(keyOf(step)) || this.#operations.has(keyOf(step))) continue;
      const notBefore = this.#retries.notBefore(step);
      if (notBefore > now) wakeAt = Math.min(notBefore, wakeAt ?? notBefore);
      else this.#launch(step);
    }
    this.#publish();
    return wakeAt;
  }

  async #observe(desired: DesiredState): Promise<Observed | null> {
    const { runtime, owner, health, log, onEvent } = this.#deps;
    try {
      this.#observed = await observe(runtime, owner, desired);
      if (this.#away !== null) {
        health.pardon();
        this.#records = pardoned(this.#records);
        onEvent("runtime_back", null, "the container engine responds again");
      }
      this.#away = null;
      return this.#observed;
    } catch (error) {
      const reason = reasonOf(error);
      if (this.#away === null) {
        log.warn({ reason }, "the container engine does not respond; nothing is changed until it does");
        onEvent("runtime_away", null, reason);
      }
      this.#away = reason;
      this.#publish();
      return null;
    }
  }

  #learn(desired: DesiredState, observed: Observed): void {
    const { health, clock } = this.#deps;
    health.track(observed.containers.flatMap((container) => probeTarget(container, observed)));
    const time = rfc3339(clock.now());
    const input = { desired, observed, health: health.statusOf, now: clock.monotonic(), time };
    const before = this.#records;
    const { records, ends } = updateRecords(before, input);
    this.#records = records;
    this.#reportReady(newlyReady(before, records), observed);
    const known = { desired, observed, records, health: health.statusOf };
    for (const end of ends) this.#reportEnd(end, known);
    this.#reportRollbacks(known);
  }

  #reportReady(names: readonly string[], observed: Observed): void {
    for (const container of observed.containers) {
      if (!names.includes(container.name)) continue;
      this.#deps.onEvent("workload_ready", containerWorkload(container), `${container.name} is ready`);
    }
  }

  #reportEnd({ container, record }: RunEnd, known: Known): void {
    const workloadId = containerWorkload(container);
    const spec = known.desired.workloads.find((candidate) => candidate.workloadId === workloadId);
    const view = spec ? viewOf(spec, known) : null;
    const givenUp = view?.rolledBack === true && view.name === container.name;
    const wait = Math.max(0, Math.round((record.notBefore - this.#deps.clock.monotonic()) / 1000));
    const again = wait === 0 ? "restarting" : `restarting in ${wait} s`;
    const reason = record.lastExit?.reason ?? "unknown";
    const message = `${container.name} ${exitedText(reason)}; ${givenUp ? "not restarting" : again}`;
    this.#deps.log.warn({ container: container.name, failures: record.failures }, message);
    this.#deps.onEvent("workload_exited", workloadId, message);
  }

  #reportRollbacks(known: Known): void {
    const views = known.desired.workloads.map((spec) => viewOf(spec, known)).filter((view) => view.rolledBack);
    for (const { spec, name, record, former } of views) {
      if (this.#rolledBack.has(name)) continue;
      const reason = record.lastExit?.reason ?? "did not become ready";
      const message = `the update to ${name} failed and is rolled back to ${former?.name}: ${reason}`;
      this.#deps.log.warn({ container: name }, message);
      this.#deps.onEvent("update_rolled_back", spec.workloadId, message);
    }
    this.#rolledBack = new Set(views.map(({ name }) => name));
  }

  #cancelUnwantedPulls(steps: readonly Step[]): void {
    const wanted = new Set(steps.map(keyOf));
    for (const [key, { step, cancel }] of this.#operations) {
      if (step.type === "pull" && !wanted.has(key)) cancel.abort();
    }
  }

  #launch(step: Step): void {
    const key = keyOf(step);
    const cancel = new AbortController();
    this.#deps.log.info({ step: describe(step) }, "starting a step");
    if (step.type === "stop")
      this.#amend(step.name, { stopping: { reason: step.reason, detail: this.#whyUnhealthy(step.name) } });
    const record = ("name" in step && this.#records.get(step.name)) || NO_RUNS;
    const { runtime, owner, pulls, secrets, networkRules, log } = this.#deps;
    const onProgress = (percent: number): void => this.#progress(step, percent);
    const { signal } = cancel;
    const ended = execute(step, { runtime, owner, pulls, secrets, networkRules, log, onProgress, signal })
      .then(
        () => this.#succeeded(step, record),
        (error: unknown) => this.#failed(step, error),
      )
      .finally(() => {
        this.#operations.delete(key);
        if (step.type === "pull") this.#pulls.delete(step.image);
        this.wake();
      });
    this.#operations.set(key, { step, cancel, ended });
  }

  #progress(step: Step, percent: number): void {
    if (step.type !== "pull" || this.#pulls.get(step.image) === percent) return;
    this.#pulls.set(step.image, percent);
    const now = this.#deps.clock.monotonic();
    if (now - this.#progressTold < PROGRESS_MS) return;
    this.#progressTold = now;
    this.#publish();
  }

  #whyUnhealthy(name: string): string {
    const container = this.#observed?.containers.find((candidate) => candidate.name === name);
    return container ? `unhealthy: ${this.#deps.health.statusOf(container).detail}` : "unhealthy";
  }

  #amend(name: string, changes: Partial<RunRecord>): void {
    this.#records = new Map(this.#records).set(name, { ...(this.#records.get(name) ?? NO_RUNS), ...changes });
  }

  #succeeded(step: Step, record: RunRecord): void {
    this.#retries.succeeded(step);
    const known = this.#observed?.containers.find((container) => "name" in step && container.name === step.name);
    if (step.type === "start" && known?.startedAt) {
      this.#amend(step.name, { restarts: (this.#records.get(step.name)?.restarts ?? 0) + 1 });
    }
    const { kind, message } = eventOf(step, record);
    this.#deps.onEvent(kind, step.workloadId, message);
  }

  #failed(step: Step, error: unknown): void {
    if (this.#closing.signal.aborted) return;
    const { clock, log, onEvent } = this.#deps;
    const message = `cannot ${describe(step)}: ${reasonOf(error)}`;
    const now = clock.monotonic();
    if (step.type === "stop") this.#amend(step.name, { stopping: null });
    const refused = error instanceof RuntimeError && error.kind === "rejected";
    if (refused && (step.type === "create" || step.type === "start")) {
      const record = this.#records.get(step.name) ?? NO_RUNS;
      this.#amend(step.name, refusedStart(record, { message: reasonOf(error), now, time: rfc3339(clock.now()) }));
    } else {
      this.#retries.failed(step, message, now);
    }
    const said = error instanceof RuntimeError && error.said !== "" ? { said: error.said } : {};
    log.warn({ step: describe(step), reason: reasonOf(error), ...said }, "a step failed");
    onEvent("step_failed", step.workloadId, message);
  }

  readonly #missingSecrets: WorkloadSecrets["missing"] = (spec) => this.#deps.secrets.missing(spec);

  #publish(): void {
    const desired = this.#desired;
    if (desired === null) return;
    this.#deps.onSnapshot({
      desired,
      observed: this.#observed,
      away: this.#away,
      records: this.#records,
      health: this.#deps.health.statusOf,
      draining: this.#draining,
      running: [...this.#operations.values()].map((operation) => operation.step),
      pulls: new Map(this.#pulls),
      failures: (workloadId, pullKey) => this.#retries.messages(workloadId, pullKey),
      missingSecrets: this.#missingSecrets,
      noWay: (workloadId) => this.#deps.networkRules.noWay(workloadId),
      now: this.#deps.clock.monotonic(),
    });
  }
}

function probeTarget(container: Container, observed: Observed): ProbeTarget[] {
  const settings = probeSettingsOf(container.labels);
  if (container.state !== "running" || container.hostPort === null || settings === null) return [];
  return [{ container, port: container.hostPort, settings, image: observed.images.get(container.imageId) ?? null }];
}
