import { type Clock, rfc3339 } from "@fairlead/protocol/clock";
import type { DaemonUpdate, WantedDaemon } from "@fairlead/protocol/daemon-updates";
import type { Finding } from "../host/condition-rules.ts";
import { type Log, reasonOf } from "../log.ts";
import type { Timers } from "../timers.ts";
import type { UpdatesAtStart } from "./open-updates.ts";
import { TrialWatch, type TrialWatchDeps } from "./trial-watch.ts";
import { nextUpdate, type Problem, type UpdateEvent, type UpdateState } from "./update-plan.ts";
import type { EndedUpdate } from "./update-record.ts";
import type { UpdateSteps } from "./update-steps.ts";
import { toDaemonUpdate, type UpdatePicture, updateFinding } from "./update-text.ts";

export interface UpdaterDeps {
  readonly opened: UpdatesAtStart;
  /** How long a version on trial has to prove itself. */
  readonly trialSeconds: number;
  /** Of the program that runs. */
  readonly version: string;
  readonly arch: string;
  /** Null where this program cannot update itself. */
  readonly steps: UpdateSteps | null;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: () => number;
  readonly log: Log;
  readonly onEvent: (kind: string, workloadId: null, message: string) => void;
  /** What is told of the update has changed. */
  readonly onChange: () => void;
}

const PERCENT_STEP = 10;

/** Makes this daemon the version that the control plane wants. One update at a time; the engines know nothing of it. */
export class Updater {
  readonly #deps: UpdaterDeps;
  readonly #trial: TrialWatch | null;
  readonly #handedOver = Promise.withResolvers<void>();
  #state: UpdateState = { name: "idle" };
  #since: string;
  #last: EndedUpdate | null;
  #percent = 0;
  /** Undefined until the control plane has said what it wants. */
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

  /** Begins to judge this version where it is on trial, and tells what became of the one before. */
  start(): void {
    const { start } = this.#deps.opened;
    if (start.kind === "settled" && start.rolledBack !== null) {
      const { wanted, message } = start.rolledBack;
      this.#tell("daemon_rolled_back", `version ${wanted} of the daemon was given up: ${message}`);
    }
    this.#trial?.start();
  }

  /** The control plane says what it wants; null: that this version stays. */
  asked(wanted: WantedDaemon | null): void {
    this.#wanted = wanted;
    // Whoever is not proven yet takes no further step.
    if (!this.isOnTrial) this.#apply({ type: "asked", wanted });
    // A version that was given up is a problem for as long as it is asked for.
    this.#deps.onChange();
  }

  /** The control plane has answered hello. */
  linked(): void {
    this.#trial?.linked();
  }

  /** The reconcile loop has done a round, with the container engine or without. */
  looked(engine: "answered" | "away"): void {
    this.#trial?.looked(engine);
  }

  /** Resolves when another version is to be started: this program ends. */
  get handedOver(): Promise<void> {
    return this.#handedOver.promise;
  }

  progress(): DaemonUpdate | null {
    return toDaemonUpdate(this.#picture());
  }

  finding(): Finding {
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
    this.#deps.log.info({ state: next.name, before: before.name }, "the update of this daemon goes on");
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
          this.#tell(
            "daemon_update_started",
            `version ${state.wanted.version} of the daemon is wanted; it is being fetched`,
          );
        }
        void this.#do(state, signal);
    }
  }

  async #do(state: Extract<UpdateState, { name: keyof UpdateSteps }>, signal: AbortSignal): Promise<void> {
    const problem = await this.#deps.steps?.[state.name](state.wanted, { signal, onPercent: this.#onPercent });
    if (signal.aborted || problem === undefined) return;
    if (problem !== null) {
      this.#deps.log.warn({ ...problem, version: state.wanted.version }, "a step of the update failed");
      this.#apply({ type: "failed", problem });
    } else if (state.name === "restarting") {
      this.#tell("daemon_update_restarting", `version ${state.wanted.version} of the daemon takes over`);
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
    this.#tell("daemon_update_refused", `version ${version} of the daemon was given up: ${message}`);
    this.#deps.opened.record
      .save({ trial: null, last: this.#last })
      // It is tried again after the next start, and refused again.
      .catch((error: unknown) => this.#deps.log.warn({ reason: reasonOf(error) }, "a refused update was not noted"));
  }

  #trialDeps(deps: UpdaterDeps): TrialWatchDeps {
    return {
      ...deps,
      onProven: (ended, from) => {
        this.#last = ended;
        this.#tell("daemon_updated", `version ${ended.wanted} of the daemon has proven itself; it was version ${from}`);
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
