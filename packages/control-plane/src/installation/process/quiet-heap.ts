import { type EventLoopUtilization, performance } from "node:perf_hooks";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { Logger } from "pino";

/** The used parts of V8 and the event loop. */
export interface HeapControls {
  /** Main thread utilization since the last call, from 0 to 1. */
  readonly load: () => number;
  /** Allowed heap growth between collections, in percent of the live size. */
  readonly allowGrowth: (percent: number) => void;
  /** A full, blocking collection. */
  readonly collect: () => void;
}

export const LOOK_MS = 2000;
/** Half a minute. */
const QUIET_LOOKS = 15;
const QUIET_BELOW = 0.2;
const BUSY_ABOVE = 0.3;
/** A collection blocks the server briefly, so alternating load must not trigger one each time. */
const BETWEEN_MS = 5 * 60_000;
const QUIET_GROWTH = 25;
/** Replaces V8's own rule, with which 8 MB bodies took 2.4 times the CPU after a quiet period (decisions/0036). */
const BUSY_GROWTH = 150;

/**
 * Returns memory after load. With plenty of memory, V8 lets the heap grow to a multiple of its live size before marking, and an idle server
 * hardly allocates: garbage of 5,000 connecting daemons stayed forever. After half a minute of quiet, this collects once and keeps the heap
 * close to its live size. Under load it may grow again, because marking costs time (decisions/0036).
 */
export class QuietHeap {
  readonly #controls: HeapControls;
  readonly #clock: Pick<Clock, "monotonic">;
  #quietLooks = 0;
  #isQuiet = false;
  #collectedAt = Number.NEGATIVE_INFINITY;

  constructor(controls: HeapControls, clock: Pick<Clock, "monotonic">) {
    this.#controls = controls;
    this.#clock = clock;
  }

  /** Call every `LOOK_MS`. */
  look(): void {
    const load = this.#controls.load();
    this.#quietLooks = load < QUIET_BELOW ? this.#quietLooks + 1 : 0;
    if (this.#isQuiet && load > BUSY_ABOVE) this.#end();
    else if (!this.#isQuiet && this.#quietLooks >= QUIET_LOOKS && this.#mayCollect()) this.#begin();
  }

  #mayCollect(): boolean {
    return this.#clock.monotonic() - this.#collectedAt >= BETWEEN_MS;
  }

  #begin(): void {
    this.#isQuiet = true;
    // V8 computes its next limit at the end of a collection.
    this.#controls.allowGrowth(QUIET_GROWTH);
    this.#controls.collect();
    this.#collectedAt = this.#clock.monotonic();
  }

  #end(): void {
    this.#isQuiet = false;
    this.#controls.allowGrowth(BUSY_GROWTH);
  }
}

/** @returns a function that stops it. */
export function startQuietHeap(clock: Clock, log: Logger): () => void {
  const controls = processControls();
  const collect = (): void => {
    const before = process.memoryUsage().heapUsed;
    const began = clock.monotonic();
    controls.collect();
    const freedMb = Math.round((before - process.memoryUsage().heapUsed) / 1024 / 1024);
    log.debug({ freedMb, ms: Math.round(clock.monotonic() - began) }, "collected garbage while the server is idle");
  };
  const heap = new QuietHeap({ ...controls, collect }, clock);
  const timer = setInterval(() => heap.look(), LOOK_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/** For this process, whose V8 is configured. */
export function processControls(): HeapControls {
  let seen: EventLoopUtilization = performance.eventLoopUtilization();
  setFlagsFromString("--expose-gc");
  // A new context sees what the flag exposes; this one's global is unchanged.
  const collect = runInNewContext("gc") as () => void;
  setFlagsFromString("--no-expose-gc");
  return {
    load: () => {
      const now = performance.eventLoopUtilization();
      const { utilization } = performance.eventLoopUtilization(now, seen);
      seen = now;
      return utilization;
    },
    allowGrowth: (percent) => setFlagsFromString(`--heap-growing-percent=${percent}`),
    collect,
  };
}
