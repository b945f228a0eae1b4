import type { Clock } from "@fairlead/protocol/clock";
import type { Container, ImageFacts } from "../runtime/container-runtime.ts";
import type { ProbeSettings } from "../runtime/ownership.ts";
import { sleep, type Timers } from "../timers.ts";

export interface HealthStatus {
  /** `unhealthy`: it has failed as often in a row as its settings allow. */
  readonly state: "starting" | "ready" | "unhealthy";
  /** What the last failed probe said. */
  readonly detail: string;
  readonly version: string;
  readonly models: readonly string[];
}

export type HealthOf = (container: Container) => HealthStatus;

export interface EngineFacts {
  readonly version: string;
  readonly models: readonly string[];
}

/** One running container and how to ask it. */
export interface ProbeTarget {
  readonly container: Container;
  readonly port: number;
  readonly settings: ProbeSettings;
  readonly image: ImageFacts | null;
}

export interface Question {
  /** The models that it is known to have. */
  readonly models: readonly string[];
  /** Whether it is also asked for a token, where its settings say so. */
  readonly completion: boolean;
}

export interface EngineProbe {
  /** @returns null when it is healthy, else what is wrong. Never throws. */
  check(target: ProbeTarget, question: Question): Promise<string | null>;
  /** @throws Error where the engine does not tell. */
  facts(target: ProbeTarget): Promise<EngineFacts>;
}

const STARTING: HealthStatus = { state: "starting", detail: "", version: "", models: [] };
/** Until it is ready it is asked more often, so that a fast start is seen at once. */
const STARTING_INTERVAL_MS = 1000;
/** With `probe: running` a container must have run for so long: most that cannot work end at once, and an update must see that. */
const SETTLED_MS = 3000;
/** Engines may gain models while they run. */
const FACTS_MS = 60_000;
/** A ready engine is asked for a token this often: each one takes a place that a person could have. */
const COMPLETION_MS = 60_000;

export interface HealthDeps {
  readonly probe: EngineProbe;
  readonly clock: Clock;
  readonly timers: Timers;
  /** Whether it answers requests now: they are the better question, and a full engine must not be ended for its slow answer. */
  readonly isBusy: (container: Container) => boolean;
  readonly onChange: () => void;
}

/** Probes every running container on its loopback port, apart from the container engine: one may hang while the other works. */
export class HealthMonitor {
  readonly #deps: HealthDeps;
  readonly #watches = new Map<string, Watch>();

  constructor(deps: HealthDeps) {
    this.#deps = deps;
  }

  /** Replaces what is watched. A container that was started anew begins anew. */
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
   * Takes back what probes have concluded so far, and asks again at once: while the container engine was away so were the ports
   * that it publishes, and a failed probe said nothing of the container behind them.
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

/** The probes of one run of one container. */
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

  constructor(deps: HealthDeps, target: ProbeTarget) {
    this.#deps = deps;
    this.#target = target;
    this.#since = deps.clock.monotonic();
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
      // It had its start period.
      this.#since = Number.NEGATIVE_INFINITY;
    }
    this.#pause.abort();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopped;
    const regular = this.#target.settings.health.intervalSeconds * 1000;
    while (!signal.aborted) {
      const next = await this.#probe();
      if (signal.aborted) return;
      const changed = JSON.stringify(next) !== JSON.stringify(this.status);
      this.status = next;
      if (changed) this.#deps.onChange();
      const interval = next.state === "starting" ? Math.min(regular, STARTING_INTERVAL_MS) : regular;
      this.#pause = new AbortController();
      await sleep(this.#deps.timers, interval, this.#pause.signal);
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

  /** By its own start, since a daemon that starts anew finds containers that have run for long. A clock that was put back says nothing. */
  #hasSettled(): boolean {
    const age = this.#deps.clock.now() - Date.parse(this.#target.container.startedAt ?? "");
    return !(age >= 0 && age < SETTLED_MS);
  }

  #isCompletionDue(): boolean {
    if (this.status.state !== "ready" || this.#completedAt === null) return true;
    const due = this.#failures > 0 || this.#deps.clock.monotonic() - this.#completedAt >= COMPLETION_MS;
    return due && !this.#deps.isBusy(this.#target.container);
  }

  #failed(detail: string): HealthStatus {
    const { startPeriodSeconds, failureThreshold } = this.#target.settings.health;
    const age = this.#deps.clock.monotonic() - this.#since;
    if (this.status.state === "starting" && age < startPeriodSeconds * 1000) return { ...this.status, detail };
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
      // Asked again at the next probe; what was known still holds.
      return { version, models: models.length > 0 ? models : (this.#target.settings.models ?? []) };
    }
  }
}
