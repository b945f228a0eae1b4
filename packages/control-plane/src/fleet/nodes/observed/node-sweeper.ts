import type { Logger } from "pino";
import type { NodeDrainService } from "../actions/node-drain-service.ts";
import type { NodeLiveness } from "./node-liveness.ts";

const SWEEP_MS = 2000;

export interface NodeSweeperDeps {
  readonly liveness: NodeLiveness;
  readonly drain: NodeDrainService;
  readonly log: Logger;
}

/** Checks silent and draining nodes, one sweep at a time. @returns a function that stops it after a final flush. */
export function startNodeSweeper({ liveness, drain, log }: NodeSweeperDeps): () => Promise<void> {
  let running: Promise<void> = Promise.resolve();
  let busy = false;
  const sweep = async (): Promise<void> => {
    busy = true;
    try {
      await drain.sweep();
      await liveness.sweep();
    } catch (error) {
      log.error({ err: error }, "node sweep failed");
    } finally {
      busy = false;
    }
  };
  // Runs immediately, too: nodes that were draining at the last stop must get no new calls.
  running = sweep();
  const timer = setInterval(() => {
    if (!busy) running = sweep();
  }, SWEEP_MS);
  timer.unref();
  return async () => {
    clearInterval(timer);
    drain.close();
    await running;
    await liveness.flush();
  };
}
