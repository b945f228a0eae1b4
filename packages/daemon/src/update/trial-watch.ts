import { type Clock, rfc3339 } from "@fairlead/protocol/values/clock";
import { type DaemonLog, reasonOf } from "../process/log.ts";
import type { Timers } from "../process/timers.ts";
import type { UpdatesAtStart } from "./open-updates.ts";
import { judgeTrial, type TrialFacts } from "./trial-rules.ts";
import type { EndedUpdate, Trial } from "./update-record.ts";

export interface TrialWatchDeps {
  readonly opened: UpdatesAtStart;
  readonly trialSeconds: number;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: DaemonLog;
  readonly onProven: (ended: EndedUpdate, from: string) => void;
  /** Ends the process so that the old version starts. */
  readonly onFailed: () => void;
}

const LOOK_MS = 1000;

/** Rolls back this version unless it works within its trial. */
export class TrialWatch {
  readonly trial: Trial;
  readonly #deps: TrialWatchDeps;
  readonly #startedAt: number;
  #linked = false;
  #round: TrialFacts["round"] = "none";
  #open = true;
  #cancel: () => void = () => undefined;

  constructor(deps: TrialWatchDeps, trial: Trial) {
    this.#deps = deps;
    this.trial = trial;
    this.#startedAt = deps.clock.monotonic();
  }

  /** Still on trial. */
  get isOpen(): boolean {
    return this.#open;
  }

  start(): void {
    void this.#look();
  }

  linked(): void {
    this.#linked = true;
  }

  looked(engine: "answered" | "away"): void {
    if (this.#round !== "answered") this.#round = engine;
  }

  close(): void {
    this.#cancel();
    this.#open = false;
  }

  async #look(): Promise<void> {
    if (!this.#open) return;
    const verdict = judgeTrial(this.trial, this.#facts());
    // A failed version gets no second trial.
    const failed = this.trial.failed ?? (verdict.verdict === "bad" ? verdict.reason : null);
    try {
      if (failed !== null) await this.#goBack(failed);
      else if (verdict.verdict === "good") await this.#prove();
    } catch (error) {
      this.#deps.log.warn({ reason: reasonOf(error) }, "could not finish the trial of this version; retrying");
    }
    if (this.#open) this.#cancel = this.#deps.timers.after(LOOK_MS, () => void this.#look());
  }

  #facts(): TrialFacts {
    const { clock, trialSeconds } = this.#deps;
    const upMs = clock.monotonic() - this.#startedAt;
    return { upMs, deadlineMs: trialSeconds * 1000, linked: this.#linked, round: this.#round };
  }

  async #prove(): Promise<void> {
    const { record, versions } = this.#deps.opened;
    const { from, to, request } = this.trial;
    const since = rfc3339(this.#deps.clock.now());
    const ended: EndedUpdate = { wanted: to, request, state: "done", message: `updated from version ${from}`, since };
    await record.save({ trial: null, last: ended });
    this.#open = false;
    this.#deps.log.info({ version: to, before: from }, "this version passed its trial");
    this.#deps.onProven(ended, from);
    try {
      await versions?.dropGuard();
      await versions?.tidy([from]);
    } catch (error) {
      this.#deps.log.warn({ reason: reasonOf(error) }, "could not remove older versions");
    }
  }

  async #goBack(failed: string): Promise<void> {
    const { record, versions, start } = this.#deps.opened;
    this.#deps.log.error({ reason: failed, before: this.trial.from }, "this version failed its trial");
    await record.save({ trial: { ...this.trial, failed }, last: start.record.last }).catch((error: unknown) => {
      // The guard still shows the rollback; only the reason is lost.
      this.#deps.log.warn({ reason: reasonOf(error) }, "could not save why the trial failed");
    });
    await versions?.turnBack(this.trial.from);
    this.#open = false;
    this.#deps.onFailed();
  }
}
