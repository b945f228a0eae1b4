import type { Logger } from "pino";
import type { MachineSweepService } from "./machine-sweep-service.ts";

const DAY_MS = 24 * 3_600_000;

/** Sweeps at the start and then daily. @returns a function that stops it. */
export function startDailySweep(sweeps: Pick<MachineSweepService, "daily">, log: Logger): () => Promise<void> {
  const sweep = async (): Promise<void> => {
    try {
      const { orphans, missing, unseen } = await sweeps.daily();
      const found = { orphans: orphans.length, missing: missing.length, unseen };
      if (found.orphans + found.missing + unseen.length > 0) log.warn(found, "rented machines and nodes differ");
    } catch (error) {
      log.error({ err: error }, "the machine sweep failed");
    }
  };
  let running = sweep();
  const timer = setInterval(() => {
    running = running.then(sweep);
  }, DAY_MS);
  timer.unref();
  return async () => {
    clearInterval(timer);
    await running;
  };
}
