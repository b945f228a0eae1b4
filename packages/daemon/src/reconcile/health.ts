import type { Clock } from "@fairlead/protocol/values/clock";
import { WORKLOAD_TYPE_ENGINE } from "@fairlead/protocol/workload";
import { sleep, type Timers } from "../process/timers.ts";
import type { Container, ImageFacts, ProcessCount } from "../runtime/container-runtime.ts";
import { type ProbeSettings, workloadTypeOf } from "../runtime/ownership.ts";

export interface HealthStatus {
  /** `unhealthy`: the configured number of probes in a row failed. */
  readonly state: "starting" | "ready" | "unhealthy";
  /** Message of the last failed probe. */
  readonly detail: string;
  readonly version: string;
  readonly models: readonly string[];
  /** The resource that is exhausted, whether or not the workload still responds. */
  readonly exhausted?: string;
}

export type HealthOf = (container: Container) => HealthStatus;

export interface EngineFacts {
  readonly version: string;
  readonly models: readonly string[];
}

/** A running container and how to probe it. */
export interface ProbeTarget {
  readonly container: Container;
  readonly port: number;
  readonly settings: ProbeSettings;
  readonly image: ImageFacts | null;
}

export interface HealthProbe {
  /** Its known models. */
  readonly models: readonly string[];
  /** Whether to request a completion too, if configured. */
  readonly completion: boolean;
}

export interface ProbeFailure {
  readonly words: string;
  /** No response yet or 503, which is normal during startup. */
  readonly mayBeLoading: boolean;
}

export interface EngineProbe {
  /** @returns null if healthy. Never throws. */
  check(target: ProbeTarget, question: HealthProbe): Promise<ProbeFailure | null>;
  /** @throws Error if the engine does not report them. */
  facts(target: ProbeTarget): Promise<EngineFacts>;
}

const STARTING: HealthStatus = { state: "starting", detail: "", version: "", models: [] };
/** Probes are more frequent until the workload is ready. */
const STARTING_INTERVAL_MS = 1000;
/** With `probe: running`, a container is ready after this time: most failures happen earlier. */
const SETTLED_MS = 3000;
/** Engines may load models while they run. */
const FACTS_MS = 60_000;
/** Interval of completion probes on a ready engine; each one uses capacity. */
const COMPLETION_MS = 60_000;
/** Interval for counting processes while the workload responds; otherwise they are counted immediately. */
const COUNT_MS = 60_000;
const COUNT_AFTER_FAILURE_MS = 5000;

export interface HealthDeps {
  readonly probe: EngineProbe;
  readonly clock: Clock;
  readonly timers: Timers;
  /** Whether it is serving requests: a busy engine must not be stopped because a probe is slow. */
  readonly isBusy: (container: Container) => boolean;
  readonly processes: (container: Container) => Promise<ProcessCount | null>;
  readonly onChange: () => void;
}

/** Probes every running container on its loopback port, independently of the container engine. */
export class HealthMonitor {
  readonly #deps: HealthDeps;
  readonly #watches = new Map<string, Watch>();

  constructor(deps: HealthDeps) {
    this.#deps = deps;
  }

  /** Replaces the watched containers. Restarted containers start over. */
  track(targets: readonly ProbeTarget[]): void {
    const runs = new Map(targets.map((target) => [runOf(target.container), target]));
    for (const [run, watch] of this.#watches) {
      if (runs.has(run)) continue;
      watch.stop();
      this.#watches.delete(run);
    }
    for (const [run, target] of runs) {
      if (!this.#watches.has(run)) this.#watches.set(run, new Watch(this.#deps, target));
    }
  }

  /**
   * Discards probe results and probes again: while the container engine was down, so were the published
   * ports, so failed probes say nothing about the containers.
   */
  pardon(): void {
    for (const watch of this.#watches.values()) watch.pardon();
  }

  readonly statusOf: HealthOf = (container) => this.#watches.get(runOf(container))?.status ?? STARTING;

  close(): void {
    this.track([]);
  }
}

function runOf(container: Container): string {
  return `${container.id} ${container.startedAt}`;
}

function loadingWords(container: Container): string {
  return workloadTypeOf(container) === WORKLOAD_TYPE_ENGINE ? "loading the model" : "starting up";
}

/** Probes of one run of a container. */
class Watch {
  status: HealthStatus = STARTING;
  readonly #deps: HealthDeps;
  readonly #target: ProbeTarget;
  #since: number;
  readonly #stopped = new AbortController();
  #pause = new AbortController();
  #failures = 0;
  #factsAt: number | null = null;
  #completedAt: number | null = null;
  #exhausted: string | null = null;
  #countedAt: number;

  constructor(deps: HealthDeps, target: ProbeTarget) {
    this.#deps = deps;
    this.#target = target;
    this.#since = deps.clock.monotonic();
    this.#countedAt = this.#since;
    void this.#run();
  }

  stop(): void {
    this.#stopped.abort();
    this.#pause.abort();
  }

  pardon(): void {
    this.#failures = 0;
    if (this.status.state === "unhealthy") {
      this.status = { ...this.status, state: "starting" };
      // The start period is over.
      this.#since = Number.NEGATIVE_INFINITY;
    }
    this.#pause.abort();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopped;
    const regular = this.#target.settings.health.intervalSeconds * 1000;
    while (!signal.aborted) {
      const next = this.#withExhaustion(await this.#probe());
      if (signal.aborted) return;
      const changed = JSON.stringify(next) !== JSON.stringify(this.status);
      this.status = next;
      if (changed) this.#deps.onChange();
      const interval = next.state === "starting" ? Math.min(regular, STARTING_INTERVAL_MS) : regular;
      this.#pause = new AbortController();
      await sleep(this.#deps.timers, interval, this.#pause.signal);
    }
  }

  /** From the last count; probes do not wait for the container engine. */
  #withExhaustion({ state, detail, version, models }: HealthStatus): HealthStatus {
    const status = { state, detail, version, models };
    const failed = detail !== "";
    const now = this.#deps.clock.monotonic();
    if (now - this.#countedAt >= (failed ? COUNT_AFTER_FAILURE_MS : COUNT_MS)) {
      this.#countedAt = now;
      void this.#count();
    }
    if (this.#exhausted === null) return status;
    return { ...status, detail: failed ? this.#exhausted : "", exhausted: this.#exhausted };
  }

  async #count(): Promise<void> {
    try {
      const processes = await this.#deps.processes(this.#target.container);
      const isReached = processes !== null && processes.limit > 0 && processes.count >= processes.limit;
      this.#exhausted = isReached ? `process limit reached: ${processes.limit} (\`resources.pids\`)` : null;
    } catch {
      // Retried with a later probe.
    }
  }

  async #probe(): Promise<HealthStatus> {
    if (this.#target.settings.health.probe === "running") {
      return this.#hasSettled() ? { state: "ready", detail: "", ...(await this.#facts()) } : this.status;
    }
    const completion = this.#isCompletionDue();
    const wrong = await this.#deps.probe.check(this.#target, { models: this.status.models, completion });
    if (wrong !== null) return this.#failed(wrong);
    this.#failures = 0;
    if (completion) this.#completedAt = this.#deps.clock.monotonic();
    return { state: "ready", detail: "", ...(await this.#facts()) };
  }

  /** Based on the container's start time, because a restarted daemon finds running containers. Ignores a clock that was set back. */
  #hasSettled(): boolean {
    const age = this.#deps.clock.now() - Date.parse(this.#target.container.startedAt ?? "");
    return !(age >= 0 && age < SETTLED_MS);
  }

  #isCompletionDue(): boolean {
    if (this.status.state !== "ready" || this.#completedAt === null) return true;
    const due = this.#failures > 0 || this.#deps.clock.monotonic() - this.#completedAt >= COMPLETION_MS;
    return due && !this.#deps.isBusy(this.#target.container);
  }

  #failed({ words: detail, mayBeLoading }: ProbeFailure): HealthStatus {
    const { startPeriodSeconds, failureThreshold } = this.#target.settings.health;
    const age = this.#deps.clock.monotonic() - this.#since;
    if (this.status.state === "starting" && age < startPeriodSeconds * 1000) {
      return { ...this.status, detail: mayBeLoading ? loadingWords(this.#target.container) : detail };
    }
    this.#failures += 1;
    const state = this.#failures >= failureThreshold ? "unhealthy" : this.status.state;
    return { ...this.status, state, detail };
  }

  async #facts(): Promise<EngineFacts> {
    const { version, models } = this.status;
    const now = this.#deps.clock.monotonic();
    if (this.#factsAt !== null && now - this.#factsAt < FACTS_MS) return { version, models };
    try {
      const facts = await this.#deps.probe.facts(this.#target);
      this.#factsAt = now;
      return facts;
    } catch {
      // Retried with the next probe; keep the last known facts.
      return { version, models: models.length > 0 ? models : (this.#target.settings.models ?? []) };
    }
  }
}
