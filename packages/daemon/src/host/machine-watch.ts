import type { DesiredState } from "@fairlead/protocol/workload";
import { sleep, type Timers } from "../process/timers.ts";
import type { ConditionBoard } from "./condition-board.ts";
import { clockFinding, diskFinding, gpuFinding, memoryFinding } from "./condition-rules.ts";
import type { DiskSpace } from "./disk-rules.ts";
import type { GpuReading } from "./gpus.ts";

export interface MachineWatchDeps {
  readonly board: Pick<ConditionBoard, "set" | "list">;
  readonly readSpace: () => Promise<DiskSpace | null>;
  /** Error of a rejected pull, or null. */
  readonly refusal: () => string | null;
  readonly readGpus: () => Promise<GpuReading>;
  /** Milliseconds that this machine's clock is ahead; null if unknown. */
  readonly skewMs: () => number | null;
  readonly desired: () => DesiredState | null;
  readonly timers: Timers;
}

const EVERY_MS = 30_000;

/** Checks disk, clock and GPUs periodically and on request. */
export class MachineWatch {
  readonly #deps: MachineWatchDeps;
  readonly #closing = new AbortController();
  #pause = new AbortController();

  constructor(deps: MachineWatchDeps) {
    this.#deps = deps;
  }

  async run(): Promise<void> {
    while (!this.#closing.signal.aborted) {
      this.#pause = new AbortController();
      await this.#look();
      if (!this.#closing.signal.aborted) await sleep(this.#deps.timers, EVERY_MS, this.#pause.signal);
    }
  }

  /** Checks again now. */
  wake(): void {
    this.#pause.abort();
  }

  close(): void {
    this.#closing.abort();
    this.#pause.abort();
  }

  async #look(): Promise<void> {
    const { board, readSpace, refusal, readGpus, skewMs, desired } = this.#deps;
    const [space, reading] = await Promise.all([readSpace(), wantsGpus(desired()) ? readGpus() : NOT_ASKED]);
    if (this.#closing.signal.aborted) return;
    const before = board.list().some(({ type, reason }) => type === "disk" && reason === "disk_pressure");
    board.set("disk", diskFinding(space, refusal(), before));
    board.set("clock", clockFinding(skewMs()));
    board.set("memory", memoryFinding(desired()));
    board.set("gpu", gpuFinding(reading, desired()));
  }
}

const NOT_ASKED: GpuReading = { state: "absent" };

function wantsGpus(desired: DesiredState | null): boolean {
  return desired?.workloads.some(({ resources }) => Boolean(resources.gpus)) ?? false;
}
