import type { Logger } from "pino";
import type { NodeLiveness } from "./node-liveness.ts";

const SWEEP_MS = 2000;

/** Runs the liveness sweep for as long as the server does, one at a time. @returns the call that ends it, after a last flush. */
export function startNodeSweeper(liveness: NodeLiveness, log: Logger): () => Promise<void> {
  let running: Promise<void> = Promise.resolve();
  let busy = false;
  const sweep = async (): Promise<void> => {
    busy = true;
    try {
      await liveness.sweep();
    } catch (error) {
      log.error({ err: error }, "node sweep failed");
    } finally {
      busy = false;
    }
  };
  const timer = setInterval(() => {
    if (!busy) running = sweep();
  }, SWEEP_MS);
  timer.unref();
  return async () => {
    clearInterval(timer);
    await running;
    await liveness.flush();
  };
}
