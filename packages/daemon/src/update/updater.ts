import type { DaemonUpdate, WantedDaemon } from "@fairlead/protocol/daemon-updates";
import { type Clock, rfc3339 } from "@fairlead/protocol/values/clock";
import type { ConditionFinding } from "../host/condition-rules.ts";
import { type DaemonLog, reasonOf } from "../process/log.ts";
import type { Timers } from "../process/timers.ts";
import type { UpdatesAtStart } from "./open-updates.ts";
import { TrialWatch, type TrialWatchDeps } from "./trial-watch.ts";
import { nextUpdate, type Problem, type UpdateEvent, type UpdateState } from "./update-plan.ts";
import type { EndedUpdate } from "./update-record.ts";
import type { UpdateSteps } from "./update-steps.ts";
import { toDaemonUpdate, type UpdatePicture, updateFinding } from "./update-text.ts";

export interface UpdaterDeps {
  readonly opened: UpdatesAtStart;
  /** Length of a trial. */
  readonly trialSeconds: number;
  /** Version of the running program. */
  readonly version: string;
  readonly arch: string;
  /** Null if this program cannot update itself. */
  readonly steps: UpdateSteps | null;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: () => number;
  readonly log: DaemonLog;
  readonly onEvent: (kind: string, workloadId: null, message: string) => void;
  /** Called when the update's status changes. */
  readonly onChange: () => void;
}

const PERCENT_STEP = 10;

/** Updates this daemon to the requested version, one update at a time. Engines are not affected. */
export class Updater {
  readonly #deps: UpdaterDeps;
  readonly #trial: TrialWatch | null;
  readonly #handedOver = Promise.withResolvers<void>();
  #state: UpdateState = { name: "idle" };
  #since: string;
  #last: EndedUpdate | null;
  #percent = 0;
  /** Undefined until the control plane has sent a request. */
  #wanted: WantedDaemon | null | undefined;
  #running = new AbortController();
  #closed = false;

  constructor(deps: UpdaterDeps) {
    this.#deps = deps;
    const { start } = deps.opened;
    this.#last = start.record.last;
    this.#since = this.#now();
    this.#trial = start.kind === "on-trial" ? new TrialWatch(this.#trialDeps(deps), start.trial) : null;
  }

  get isOnTrial(): boolean {
    return this.#trial?.isOpen === true;
  }

  /** Starts the trial of this version, if any, and reports the result of the last update. */
  start(): void {
    const { start } = this.#deps.opened;
    if (start.kind === "settled" && start.rolledBack !== null) {
      const { wanted, message } = start.rolledBack;
      this.#tell("daemon_rolled_back", `the update to daemon version ${wanted} failed: ${message}`);
    }
    this.#trial?.start();
  }

  /** Sets the requested version; null keeps this one. */
  asked(wanted: WantedDaemon | null): void {
    this.#wanted = wanted;
    // A version on trial does not start another update.
    if (!this.isOnTrial) this.#apply({ type: "asked", wanted });
    // A failed version stays a problem while it is requested.
    this.#deps.onChange();
  }

  /** Call when the link is established. */
  linked(): void {
    this.#trial?.linked();
  }

  /** Call after a round of the reconcile loop. */
  looked(engine: "answered" | "away"): void {
    this.#trial?.looked(engine);
  }

  /** Resolves when this program must exit so that another version starts. */
  get handedOver(): Promise<void> {
    return this.#handedOver.promise;
  }

  progress(): DaemonUpdate | null {
    return toDaemonUpdate(this.#picture());
  }

  finding(): ConditionFinding {
    const { last, wanted } = { last: this.#last, wanted: this.#wanted };
    const isWanted = wanted === undefined || (wanted?.version === last?.wanted && wanted?.request === last?.request);
    return updateFinding(this.#picture(), isWanted);
  }

  close(): void {
    this.#closed = true;
    this.#running.abort();
    this.#trial?.close();
  }

  #picture(): UpdatePicture {
    const trial = this.isOnTrial ? (this.#trial?.trial ?? null) : null;
    return { state: this.#state, trial, last: this.#last, percent: this.#percent, since: this.#since };
  }

  #apply(event: UpdateEvent): void {
    if (this.#closed) return;
    const { version, arch, steps, random } = this.#deps;
    const facts = { version, arch, installed: steps !== null, last: this.#last, random: random() };
    const next = nextUpdate(this.#state, event, facts);
    if (next === this.#state || (next.name === "idle" && this.#state.name === "idle")) return;
    this.#running.abort();
    this.#running = new AbortController();
    const before = this.#state;
    this.#state = next;
    this.#since = this.#now();
    this.#deps.log.info({ state: next.name, before: before.name }, "daemon update: new state");
    this.#enter(next, this.#running.signal);
    this.#deps.onChange();
  }

  #enter(state: UpdateState, signal: AbortSignal): void {
    switch (state.name) {
      case "idle":
        return;
      case "waiting": {
        const cancel = this.#deps.timers.after(state.delayMs, () => this.#apply({ type: "due" }));
        signal.addEventListener("abort", cancel, { once: true });
        return;
      }
      case "refused":
        this.#refuse(state.wanted, state.problem);
        return;
      case "downloading":
      case "unpacking":
      case "checking":
      case "restarting":
        if (state.name === "downloading" && state.attempt === 0) {
          this.#tell("daemon_update_started", `updating the daemon to version ${state.wanted.version}; downloading`);
        }
        void this.#do(state, signal);
    }
  }

  async #do(state: Extract<UpdateState, { name: keyof UpdateSteps }>, signal: AbortSignal): Promise<void> {
    const problem = await this.#deps.steps?.[state.name](state.wanted, { signal, onPercent: this.#onPercent });
    if (signal.aborted || problem === undefined) return;
    if (problem !== null) {
      this.#deps.log.warn({ ...problem, version: state.wanted.version }, "an update step failed");
      this.#apply({ type: "failed", problem });
    } else if (state.name === "restarting") {
      this.#tell("daemon_update_restarting", `restarting as daemon version ${state.wanted.version}`);
      this.#handedOver.resolve();
    } else this.#apply({ type: "done" });
  }

  readonly #onPercent = (percent: number): void => {
    const step = Math.floor(percent / PERCENT_STEP) * PERCENT_STEP;
    if (step === this.#percent) return;
    this.#percent = step;
    this.#deps.onChange();
  };

  #refuse(wanted: WantedDaemon, { message }: Problem): void {
    const { version, request } = wanted;
    this.#last = { wanted: version, request, state: "refused", message, since: this.#now() };
    this.#tell("daemon_update_refused", `the update to daemon version ${version} failed: ${message}`);
    this.#deps.opened.record
      .save({ trial: null, last: this.#last })
      // After the next start it is tried and rejected again.
      .catch((error: unknown) => this.#deps.log.warn({ reason: reasonOf(error) }, "could not save a failed update"));
  }

  #trialDeps(deps: UpdaterDeps): TrialWatchDeps {
    return {
      ...deps,
      onProven: (ended, from) => {
        this.#last = ended;
        this.#tell("daemon_updated", `updated the daemon from version ${from} to ${ended.wanted}; the trial passed`);
        this.#apply({ type: "asked", wanted: this.#wanted ?? null });
        this.#deps.onChange();
      },
      onFailed: () => this.#handedOver.resolve(),
    };
  }

  #tell(kind: string, message: string): void {
    this.#deps.onEvent(kind, null, message);
  }

  #now(): string {
    return rfc3339(this.#deps.clock.now());
  }
}
