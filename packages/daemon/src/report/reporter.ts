import type { Observation } from "@fairlead/protocol/daemon-link";
import { fullJitter } from "@fairlead/protocol/values/backoff";
import { type ReadyRequest, WORKLOAD_TYPE_ENGINE, type WorkloadReport } from "@fairlead/protocol/workload";
import { CallRejected, type LinkConnection } from "../link/control-link.ts";
import { PlatformError } from "../link/platform-answer.ts";
import { type DaemonLog, reasonOf } from "../process/log.ts";
import { sleep, type Timers } from "../process/timers.ts";

export interface ReporterDeps {
  readonly nodeId: string;
  readonly operatingSystem: string;
  /** `POST /v1/nodes/{id}/ready`. @throws Error if it was not accepted. */
  readonly callReady: (request: ReadyRequest) => Promise<void>;
  readonly timers: Timers;
  readonly random: () => number;
  readonly log: DaemonLog;
}

const BACKOFF = { baseMs: 1000, maxMs: 30_000 };
/** Delay between sends, to merge bursts of changes. */
const GAP_MS = 500;
/** Interval for resending everything in case something was lost, with 50 % jitter. */
const RESEND_MS = 10 * 60_000;

/**
 * Reports observations: over the link on every change, and with `ready` once the engines are ready (of an older
 * generation after a rollback; agents are included but not waited for) and on every later change. Sends are sequential, so an older report never follows a newer one.
 */
export class Reporter {
  readonly #deps: ReporterDeps;
  readonly #closing = new AbortController();
  #picture: Observation | null = null;
  #connection: LinkConnection | null = null;
  #observed = "";
  #toldReady = "";
  #announced = false;
  #dirty = false;
  #sending: Promise<void> | null = null;
  #failures = 0;
  /** Delay requested by the control plane. */
  #waitMs = 0;
  #cancelTimer: () => void = () => undefined;

  constructor(deps: ReporterDeps) {
    this.#deps = deps;
  }

  update(picture: Observation): void {
    this.#picture = picture;
    this.#wake();
  }

  /** The link is live: resend everything. */
  attach(connection: LinkConnection): void {
    this.#connection = connection;
    this.#forgetWhatWasSaid();
    this.#wake();
  }

  detach(): void {
    this.#connection = null;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#cancelTimer();
    await this.#sending;
  }

  #forgetWhatWasSaid(): void {
    this.#observed = "";
    this.#toldReady = "";
  }

  #wake(): void {
    this.#dirty = true;
    if (this.#closing.signal.aborted || this.#sending !== null) return;
    this.#sending = this.#send().finally(() => {
      this.#sending = null;
      if (this.#dirty) this.#wake();
    });
  }

  async #send(): Promise<void> {
    while (this.#dirty && !this.#closing.signal.aborted) {
      this.#dirty = false;
      const picture = this.#picture;
      if (picture === null) return;
      this.#waitMs = 0;
      const sent = (await this.#observe(picture)) && (await this.#ready(picture));
      this.#failures = sent ? 0 : this.#failures + 1;
      if (sent) this.#resend();
      else this.#schedule(Math.max(this.#waitMs, fullJitter(BACKOFF, this.#failures, this.#deps.random())));
      await sleep(this.#deps.timers, Math.max(GAP_MS, this.#waitMs), this.#closing.signal);
    }
  }

  #resend(): void {
    this.#schedule((RESEND_MS * (1 + this.#deps.random())) / 2, () => this.#forgetWhatWasSaid());
  }

  #schedule(delay: number, first: () => void = () => undefined): void {
    this.#cancelTimer();
    if (this.#closing.signal.aborted) return;
    this.#cancelTimer = this.#deps.timers.after(delay, () => {
      first();
      this.#wake();
    });
  }

  async #observe(picture: Observation): Promise<boolean> {
    const connection = this.#connection;
    const key = JSON.stringify(picture);
    if (connection === null || key === this.#observed) return true;
    try {
      await connection.observe(picture);
      if (connection === this.#connection) this.#observed = key;
      return true;
    } catch (error) {
      this.#deps.log.warn({ reason: reasonOf(error) }, "could not send an observation");
      if (error instanceof CallRejected) this.#waitMs = error.retryAfterMs;
      return false;
    }
  }

  async #ready(picture: Observation): Promise<boolean> {
    const { workloadReports } = picture;
    this.#announced ||= workloadReports.every((report) => report.ready || !isOfEngine(report));
    const key = JSON.stringify({
      ...picture,
      // The call is about workloads, not about the machine or the daemon.
      conditions: [],
      daemonUpdate: null,
      workloadReports: workloadReports.map((report) => ({ ...report, message: "", progress: null })),
    });
    if (!this.#announced || key === this.#toldReady) return true;
    try {
      await this.#deps.callReady(this.#request(picture));
    } catch (error) {
      this.#deps.log.warn({ reason: reasonOf(error) }, "the ready call failed");
      if (error instanceof PlatformError) this.#waitMs = error.retryAfterMs ?? 0;
      // It would be rejected again; wait for the next change or resend.
      if (!(error instanceof PlatformError) || error.status >= 500 || error.status === 401 || error.status === 429)
        return false;
    }
    this.#toldReady = key;
    return true;
  }

  #request({ workloadReports }: Observation): ReadyRequest {
    const engine = workloadReports.find(isOfEngine);
    return {
      id: this.#deps.nodeId,
      workloadReports,
      operatingSystem: this.#deps.operatingSystem,
      workerImageDigest: engine?.imageDigest ?? "",
    };
  }
}

function isOfEngine({ workloadType }: WorkloadReport): boolean {
  return workloadType === WORKLOAD_TYPE_ENGINE;
}
