import { writeSync } from "node:fs";
import { workerData } from "node:worker_threads";
import { BEAT, STOPPING_FOR_MS, type StopWatchData, UNSET } from "./stop-watch-shared.ts";

/** The thread of `stop-watch.ts`. It blocks on purpose and only reads two numbers. */

const TICK_MS = 500;
/** Margin, so that the process ends within the limit. */
const EARLY_MS = 1000;
const STANDARD_OUTPUT = 1;

const { shared, boundMs } = workerData as StopWatchData;
const limitMs = boundMs - EARLY_MS;

let beat = Atomics.load(shared, BEAT);
let lookedAt = performance.now();
let stuckMs = 0;
let stoppingMs: number | null = null;

for (;;) {
  Atomics.wait(shared, BEAT, beat, TICK_MS);
  const now = performance.now();
  // The process was suspended, not stuck.
  const passedMs = Math.min(now - lookedAt, 2 * TICK_MS);
  lookedAt = now;
  const latest = Atomics.load(shared, BEAT);
  stuckMs = latest === beat ? stuckMs + passedMs : 0;
  beat = latest;
  stoppingMs = stoppingFor(stoppingMs, passedMs);
  if (stoppingMs !== null && stoppingMs >= limitMs) end("forced shutdown: it took too long");
  else if (stuckMs >= limitMs) end("forced shutdown: the event loop is blocked and does not handle signals");
}

function stoppingFor(before: number | null, passedMs: number): number | null {
  if (before !== null) return before + passedMs;
  const sinceMs = Atomics.load(shared, STOPPING_FOR_MS);
  return sinceMs === UNSET ? null : sinceMs;
}

/** Exits like a crash: acknowledged writes are on disk, and the next start settles the rest. */
function end(msg: string): void {
  const line = { level: "fatal", time: new Date().toISOString(), boundSeconds: boundMs / 1000, msg };
  try {
    writeSync(STANDARD_OUTPUT, `${JSON.stringify(line)}\n`);
  } catch {
    // A full pipe must not block the exit.
  }
  process.kill(process.pid, "SIGKILL");
}
