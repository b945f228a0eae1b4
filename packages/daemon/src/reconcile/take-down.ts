import type { DesiredState } from "@fairlead/protocol/workload";
import { sleep, type Timers } from "../process/timers.ts";
import type { LoopSnapshot } from "./loop.ts";

export interface TakeDownDeps {
  readonly desired: DesiredState;
  /** Accepts a desired state and persists it. */
  readonly accept: (desired: DesiredState) => void;
  readonly snapshot: () => LoopSnapshot | null;
  /** Removes their packet filter rules. */
  readonly networks: { remove(): Promise<void> };
  readonly timers: Timers;
  readonly signal: AbortSignal;
}

const LOOK_MS = 500;
const LIMIT_MS = 10 * 60_000;

/**
 * Accepts an empty desired state, so that the loop removes all of this node's workloads.
 * @returns whether everything was removed; false after ten minutes or on abort.
 */
export async function takeDown({
  desired,
  accept,
  snapshot,
  networks,
  timers,
  signal,
}: TakeDownDeps): Promise<boolean> {
  const generation = desired.generation + 1;
  accept({ ...desired, generation, workloads: [] });
  for (let waited = 0; waited < LIMIT_MS && !signal.aborted; waited += LOOK_MS) {
    const seen = snapshot();
    const told = seen !== null && seen.desired.generation === generation && seen.away === null;
    if (told && seen.observed?.containers.length === 0 && seen.observed.networks.size === 0) {
      // Rules for removed bridges have no effect.
      await networks.remove().catch(() => undefined);
      return true;
    }
    await sleep(timers, LOOK_MS, signal);
  }
  return false;
}
