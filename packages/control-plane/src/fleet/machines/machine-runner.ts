import type { Clock } from "@fairlead/protocol/values/clock";
import type { Logger } from "pino";
import type { NodeChangeFeed } from "../nodes/node-change-feed.ts";
import type { MachineStore } from "./machine-store.ts";
import type { ProvisioningService } from "./provisioning/provisioning-service.ts";

export interface MachineRunnerDeps {
  readonly machines: Pick<MachineStore, "open">;
  readonly provisioning: Pick<ProvisioningService, "advance">;
  readonly changes: NodeChangeFeed;
  readonly clock: Clock;
  readonly log: Logger;
}

const LOOK_MS = 500;
/** Retry delay of a failed step, for example while the store is unavailable. */
const AGAIN_MS = 5000;
/** Keeps a burst of orders from using up a provider's rate. */
const AT_ONCE = 16;

/**
 * Advances all open machines while the server runs, starting with those open at the start. @returns a function that stops it;
 * unfinished machines continue at the next start.
 */
export function startMachineRunner(deps: MachineRunnerDeps): () => Promise<void> {
  const { machines, provisioning, changes, clock, log } = deps;
  const running = new Map<string, Promise<void>>();
  const dueAt = new Map<string, number>();
  let stopped = false;

  const step = async (nodeId: string): Promise<void> => {
    let afterMs: number | null = AGAIN_MS;
    try {
      afterMs = await provisioning.advance(nodeId);
    } catch (error) {
      log.error({ err: error, nodeId }, "a machine's step failed");
    } finally {
      running.delete(nodeId);
      if (afterMs === null) dueAt.delete(nodeId);
      else dueAt.set(nodeId, clock.monotonic() + afterMs);
    }
    if (afterMs === 0) look();
  };
  const begin = (ids: readonly string[]): void => {
    for (const id of ids) {
      if (stopped || running.size >= AT_ONCE) return;
      if (!running.has(id) && (dueAt.get(id) ?? 0) <= clock.monotonic()) running.set(id, step(id));
    }
  };
  let looking: Promise<void> | null = null;
  const look = (): void => {
    looking ??= machines
      .open()
      .then(begin)
      .catch((error: unknown) => log.error({ err: error }, "looking for open machines failed"))
      .finally(() => {
        looking = null;
      });
  };
  // Enrollments, new tokens and deletions may unblock a machine.
  const stopListening = changes.listen(({ nodeId, aspect }) => {
    if (aspect !== "report") dueAt.delete(nodeId);
  });
  look();
  const timer = setInterval(look, LOOK_MS);
  timer.unref();
  return async () => {
    stopped = true;
    clearInterval(timer);
    stopListening();
    await looking;
    await Promise.all(running.values());
  };
}
