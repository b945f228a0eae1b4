import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { call } from "./call.ts";
import type { DaemonReport } from "./daemon-program.ts";
import type { AttackStage } from "./stage.ts";
import { turnWaitMs } from "./turn-wait.ts";

/** What the server tells of itself at one moment, and what it spent since the sample before. */
export interface Sample {
  /** The event loop's longest delay since the sample before. */
  readonly lagMs: number;
  /** Processor time since the sample before. */
  readonly cpuMs: number;
  /** How long the main thread waited for a turn on a processor since the sample before. */
  readonly waitMs: number;
  readonly rssBytes: number;
  readonly heapBytes: number;
  readonly files: number;
  readonly timers: number;
  readonly statements: number;
  readonly storeBytes: number;
  readonly logBytes: number;
}

const SAMPLE_MS = 500;
/** A server that does not say how it is for so long is stopped for everybody. */
const ANSWER_MS = 20_000;

/** Looks at the server and at the daemon behind the hostile engine, all the time. */
export class Watch {
  readonly samples: Sample[] = [];
  readonly daemon: DaemonReport[] = [];
  /** Times that the server did not tell its figures. */
  unanswered = 0;
  readonly #stage: AttackStage;
  readonly #done: Promise<void>;
  #cpuMs = 0;
  #waitMs = 0;
  #isOver = false;

  constructor(stage: AttackStage) {
    this.#stage = stage;
    void this.#hearDaemon();
    this.#done = this.#run();
  }

  get newest(): Sample {
    const sample = this.samples.at(-1);
    if (sample === undefined) throw new Error("there is no sample yet");
    return sample;
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#done;
  }

  /** @returns when as many samples more were taken, or the server did not answer. */
  async more(count: number): Promise<void> {
    const enough = this.samples.length + this.unanswered + count;
    while (this.samples.length + this.unanswered < enough && this.#stage.server.running) await sleep(SAMPLE_MS / 5);
  }

  /** @returns whether the daemon told as many times more that it is well. */
  async daemonReports(count: number): Promise<boolean> {
    const enough = this.daemon.length + count;
    const deadline = performance.now() + ANSWER_MS;
    while (this.daemon.length < enough && performance.now() < deadline) await sleep(SAMPLE_MS / 5);
    return this.daemon.length >= enough;
  }

  /** Of each node, how many events are stored. */
  eventsByNode(): readonly { readonly node: string; readonly events: number }[] {
    const db = new DatabaseSync(join(this.#stage.server.dataDir, "fairlead.db"), { readOnly: true });
    try {
      const rows = db.prepare("select node_id, count(*) as events from node_event group by node_id").all();
      return rows.map((row) => ({ node: String(row["node_id"]), events: Number(row["events"]) }));
    } finally {
      db.close();
    }
  }

  async #run(): Promise<void> {
    while (!this.#isOver && this.#stage.server.running) {
      const sample = await this.#sample();
      if (sample === null) this.unanswered += 1;
      else this.samples.push(sample);
      await sleep(SAMPLE_MS);
    }
  }

  async #hearDaemon(): Promise<void> {
    for (;;) {
      try {
        this.daemon.push(await this.#stage.daemon.hear(({ ready }) => ready));
      } catch {
        return;
      }
    }
  }

  async #sample(): Promise<Sample | null> {
    const url = this.#stage.server.url;
    const { status, text } = await call({ url, path: "/metrics", deadlineMs: ANSWER_MS });
    if (status !== 200) return null;
    const figures = figuresOf(text);
    const cpuMs = 1000 * sum(figures, "process_cpu_seconds_total");
    const waitMs = turnWaitMs(this.#stage.server.pid);
    const sample = {
      waitMs: waitMs - this.#waitMs,
      lagMs: 1000 * sum(figures, "nodejs_eventloop_lag_max_seconds"),
      cpuMs: cpuMs - this.#cpuMs,
      rssBytes: sum(figures, "process_resident_memory_bytes"),
      heapBytes: sum(figures, "nodejs_heap_size_used_bytes"),
      files: sum(figures, "process_open_fds"),
      timers: sum(figures, 'nodejs_active_resources{type="Timeout"}'),
      statements: sum(figures, "fairlead_store_statement_seconds_count"),
      storeBytes: bytesIn(this.#stage.server.dataDir),
      logBytes: this.#stage.server.logBytes,
    };
    this.#cpuMs = cpuMs;
    this.#waitMs = waitMs;
    return sample;
  }
}

function figuresOf(text: string): ReadonlyMap<string, number> {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ") + 1))]),
  );
}

/** @param name of one series, or of all with its name and any labels. */
function sum(figures: ReadonlyMap<string, number>, name: string): number {
  let total = 0;
  for (const [series, value] of figures) if (series === name || series.startsWith(`${name}{`)) total += value;
  return total;
}

function bytesIn(folder: string): number {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const sizes = entries.map(
    (entry) => statSync(join(entry.parentPath, entry.name), { throwIfNoEntry: false })?.size ?? 0,
  );
  return sizes.reduce((total, size) => total + size, 0);
}
