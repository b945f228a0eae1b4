import type { DesiredState } from "@fairlead/protocol/workload";
import { sleep, type Timers } from "../timers.ts";
import type { Snapshot } from "./loop.ts";

export interface TakeDownDeps {
  readonly desired: DesiredState;
  /** Takes a desired state over, and keeps it through a restart. */
  readonly accept: (desired: DesiredState) => void;
  readonly snapshot: () => Snapshot | null;
  readonly timers: Timers;
  readonly signal: AbortSignal;
}

const LOOK_MS = 500;
const LIMIT_MS = 10 * 60_000;

/**
 * Nothing is wanted any more: the loop stops and removes what is this node's, with all its care for what is not.
 * @returns whether all of it went; false after ten minutes, or when the signal aborts.
 */
export async function takeDown({ desired, accept, snapshot, timers, signal }: TakeDownDeps): Promise<boolean> {
  const generation = desired.generation + 1;
  accept({ ...desired, generation, workloads: [] });
  for (let waited = 0; waited < LIMIT_MS && !signal.aborted; waited += LOOK_MS) {
    const seen = snapshot();
    const told = seen !== null && seen.desired.generation === generation && seen.away === null;
    if (told && seen.observed?.containers.length === 0) return true;
    await sleep(timers, LOOK_MS, signal);
  }
  return false;
}
