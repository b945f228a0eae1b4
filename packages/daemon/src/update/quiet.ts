import { sleep, type Timers } from "../timers.ts";

/** So long a new version waits for a moment without calls; calls that run through the tunnel would be cut. */
const LONGEST_MS = 60_000;
const LOOK_MS = 250;

/** Resolves in the first moment in which no call runs, and after a minute in any case: a busy node has no such moment. */
export async function whenQuiet(isBusy: () => boolean, timers: Timers, signal: AbortSignal): Promise<void> {
  for (let waited = 0; isBusy() && waited < LONGEST_MS && !signal.aborted; waited += LOOK_MS) {
    await sleep(timers, LOOK_MS, signal);
  }
}
