import { fullJitter } from "@fairlead/protocol/backoff";
import { AGENTS_PROTOCOL_VERSION, type Observation } from "@fairlead/protocol/daemon-link";
import { type ReadyRequest, WORKLOAD_TYPE_ENGINE, type WorkloadReport } from "@fairlead/protocol/workload";
import type { LinkConnection } from "../link/control-link.ts";
import { PlatformError } from "../link/platform-answer.ts";
import { type Log, reasonOf } from "../log.ts";
import { sleep, type Timers } from "../timers.ts";

export interface ReporterDeps {
  readonly nodeId: string;
  readonly operatingSystem: string;
  /** `POST /v1/nodes/{id}/ready`. @throws Error where it was not taken. */
  readonly callReady: (request: ReadyRequest) => Promise<void>;
  readonly timers: Timers;
  readonly random: () => number;
  readonly log: Log;
}

const BACKOFF = { baseMs: 1000, maxMs: 30_000 };
/** Between two sends, so that a burst of changes becomes one. */
const GAP_MS = 500;
/** Everything is said again slowly, so that nothing that got lost can matter; at random from half of it on, since nodes are many. */
const RESEND_MS = 10 * 60_000;

/**
 * Tells the control plane what is: over the link on every change, and by `ready` once the engines are ready (of an older
 * generation where an update was rolled back; agents are told of, but not waited for) and on every change from then on. One send at a time and in order, so an older picture never comes after a newer.
 */
export class Reporter {
  readonly #deps: ReporterDeps;
  readonly #closing = new AbortController();
  #picture: Observation | null = null;
  #connection: LinkConnection | null = null;
  /** One that has never heard of agents would refuse everything that is told beside them. */
  #knowsAgents = true;
  #observed = "";
  #toldReady = "";
  #announced = false;
  #dirty = false;
  #sending: Promise<void> | null = null;
  #failures = 0;
  #cancelTimer: () => void = () => undefined;

  constructor(deps: ReporterDeps) {
    this.#deps = deps;
  }

  update(picture: Observation): void {
    this.#picture = picture;
    this.#wake();
  }

  /** The link is live: everything is said anew. */
  attach(connection: LinkConnection, protocolVersion: number): void {
    this.#connection = connection;
    this.#knowsAgents = protocolVersion >= AGENTS_PROTOCOL_VERSION;
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
      const picture = this.#toTell();
      if (picture === null) return;
      const sent = (await this.#observe(picture)) && (await this.#ready(picture));
      this.#failures = sent ? 0 : this.#failures + 1;
      if (sent) this.#resend();
      else this.#schedule(fullJitter(BACKOFF, this.#failures, this.#deps.random()));
      await sleep(this.#deps.timers, GAP_MS, this.#closing.signal);
    }
  }

  #toTell(): Observation | null {
    const picture = this.#picture;
    if (picture === null || this.#knowsAgents) return picture;
    return { ...picture, workloadReports: picture.workloadReports.filter(isOfEngine) };
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
      this.#deps.log.warn({ reason: reasonOf(error) }, "an observation was not taken");
      return false;
    }
  }

  async #ready(picture: Observation): Promise<boolean> {
    const { workloadReports } = picture;
    this.#announced ||= workloadReports.every((report) => report.ready || !isOfEngine(report));
    const key = JSON.stringify({
      ...picture,
      // Those are the machine's and the daemon's, and the call is about its workloads.
      conditions: [],
      daemonUpdate: null,
      workloadReports: workloadReports.map((report) => ({ ...report, message: "", progress: null })),
    });
    if (!this.#announced || key === this.#toldReady) return true;
    try {
      await this.#deps.callReady(this.#request(picture));
    } catch (error) {
      this.#deps.log.warn({ reason: reasonOf(error) }, "the ready call was not taken");
      // The same words would be refused again; the next change or the slow resend says new ones.
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
