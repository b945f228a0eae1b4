import type { DesiredState } from "@fairlead/protocol/workload";
import { sleep, type Timers } from "../timers.ts";
import type { ConditionBoard } from "./condition-board.ts";
import { clockFinding, diskFinding, gpuFinding } from "./condition-rules.ts";
import type { DiskSpace } from "./disk-rules.ts";
import type { GpuReading } from "./gpus.ts";

export interface MachineWatchDeps {
  readonly board: Pick<ConditionBoard, "set" | "list">;
  readonly readSpace: () => Promise<DiskSpace | null>;
  /** What a refused pull was told, or null. */
  readonly refusal: () => string | null;
  readonly readGpus: () => Promise<GpuReading>;
  /** By which this machine's clock is ahead, in milliseconds; null while that is not known. */
  readonly skewMs: () => number | null;
  readonly desired: () => DesiredState | null;
  readonly timers: Timers;
}

const EVERY_MS = 30_000;

/** Looks at disk, clock and GPUs from time to time, and when asked to. */
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

  /** Something has changed: look again at once. */
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
    board.set("gpu", gpuFinding(reading, desired()));
  }
}

const NOT_ASKED: GpuReading = { state: "absent" };

function wantsGpus(desired: DesiredState | null): boolean {
  return desired?.workloads.some(({ resources }) => Boolean(resources.gpus)) ?? false;
}
