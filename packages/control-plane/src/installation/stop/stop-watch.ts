import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import type { Clock } from "@fairlead/protocol/values/clock";
import { BEAT, GRACE_MS, STOPPING_FOR_MS, type StopWatchData, UNSET } from "./stop-watch-shared.ts";

export interface StopWatchOptions {
  /** Shutdown time from the settings; the process exits within five seconds after it. */
  readonly stopMs: number;
  readonly clock: Pick<Clock, "monotonic">;
}

export interface StopWatch {
  /** Starts the shutdown deadline. */
  stopping(): void;
}

const BEAT_MS = 500;

/** Shutdown time from the settings: lame duck plus running calls. */
export function stopMsOf(server: { readonly lameDuckSeconds: number; readonly shutdownSeconds: number }): number {
  return (server.lameDuckSeconds + server.shutdownSeconds) * 1000;
}

/** Time from the stop signal until the process has exited. */
export function stopBoundMs(stopMs: number): number {
  return stopMs + GRACE_MS;
}

/**
 * Ends a process whose event loop is blocked: Node delivers signals only to the main loop, so a thread watches it. The thread cannot see
 * signals (decisions/0040): a loop blocked for as long as a shutdown may take is ended, whether or not a signal was sent.
 */
export function startStopWatch({ stopMs, clock }: StopWatchOptions): StopWatch {
  const shared = new Int32Array(new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT));
  Atomics.store(shared, STOPPING_FOR_MS, UNSET);
  let beatAt = clock.monotonic();
  let blockedMs = 0;
  setInterval(() => {
    const now = clock.monotonic();
    // Timers run before signals, so the delay of a signal is known when it arrives.
    blockedMs = now - beatAt > 2 * BEAT_MS ? now - beatAt : 0;
    beatAt = now;
    Atomics.add(shared, BEAT, 1);
  }, BEAT_MS).unref();
  const workerData: StopWatchData = { shared, boundMs: stopBoundMs(stopMs) };
  // Next to this file, both in source and in a build.
  const url = new URL(`./stop-watch-worker${extname(import.meta.url)}`, import.meta.url);
  const worker = new Worker(url, { workerData, execArgv: [], env: {}, resourceLimits: SMALL });
  // A failed watch must not stop the server.
  worker.on("error", (error: unknown) =>
    process.emitWarning(`the shutdown of this process has no time limit: ${String(error)}`),
  );
  worker.unref();
  return {
    stopping: () => {
      const sinceMs = Math.round(blockedMs + clock.monotonic() - beatAt);
      Atomics.compareExchange(shared, STOPPING_FOR_MS, UNSET, sinceMs);
      Atomics.notify(shared, BEAT);
    },
  };
}

/** Uses two numbers; the rest is the overhead of a thread. */
const SMALL = { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 1, stackSizeMb: 1 };
