import { type EventLoopUtilization, performance } from "node:perf_hooks";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Clock } from "@fairlead/protocol/clock";
import type { Logger } from "pino";

/** What is asked of V8, and of the event loop. */
export interface HeapControls {
  /** How much of the time since it was last asked the main thread worked, from 0 to 1. */
  readonly load: () => number;
  /** How much may be added to what lived through a collection before the next one, in percent. */
  readonly allowGrowth: (percent: number) => void;
  /** Collects everything at once: nothing else runs meanwhile. */
  readonly collect: () => void;
}

export const LOOK_MS = 2000;
/** Half a minute. */
const QUIET_LOOKS = 15;
const QUIET_BELOW = 0.2;
const BUSY_ABOVE = 0.3;
/** A collection stops the server for a moment, so a load that comes and goes must not bring one each time. */
const BETWEEN_MS = 5 * 60_000;
const QUIET_GROWTH = 25;
/** In place of V8's own rule, by which 8 MB bodies took 2.4 times the CPU after a quiet time (decisions/0036). */
const BUSY_GROWTH = 150;

/**
 * Gives memory back after a storm. Where the machine has plenty, V8 lets the heap grow to a multiple of what lives in it before it marks
 * it, and a server that rests hardly adds to it: what 5,000 daemons left behind when they connected stayed for good. Once the server has
 * been quiet for half a minute this collects once, and has V8 keep the heap close to what lives for as long as it stays quiet. Under load
 * it may grow again, since each marking costs time (decisions/0036).
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

  /** To be called every `LOOK_MS`. */
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
    // V8 reckons what may come next at the end of a collection.
    this.#controls.allowGrowth(QUIET_GROWTH);
    this.#controls.collect();
    this.#collectedAt = this.#clock.monotonic();
  }

  #end(): void {
    this.#isQuiet = false;
    this.#controls.allowGrowth(BUSY_GROWTH);
  }
}

/** @returns the call that ends it. */
export function startQuietHeap(clock: Clock, log: Logger): () => void {
  const controls = processControls();
  const collect = (): void => {
    const before = process.memoryUsage().heapUsed;
    const began = clock.monotonic();
    controls.collect();
    const freedMb = Math.round((before - process.memoryUsage().heapUsed) / 1024 / 1024);
    log.debug({ freedMb, ms: Math.round(clock.monotonic() - began) }, "collected garbage while it is quiet");
  };
  const heap = new QuietHeap({ ...controls, collect }, clock);
  const timer = setInterval(() => heap.look(), LOOK_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/** Of this process, whose V8 they are. */
export function processControls(): HeapControls {
  let seen: EventLoopUtilization = performance.eventLoopUtilization();
  setFlagsFromString("--expose-gc");
  // A context sees what the flag exposes when it is made; this one's global stays as it is.
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
