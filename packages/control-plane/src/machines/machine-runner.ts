import type { Clock } from "@fairlead/protocol/clock";
import type { Logger } from "pino";
import type { NodeChanges } from "../nodes/node-changes.ts";
import type { MachineStore } from "./machine-store.ts";
import type { ProvisioningService } from "./provisioning-service.ts";

export interface MachineRunnerDeps {
  readonly machines: Pick<MachineStore, "open">;
  readonly provisioning: Pick<ProvisioningService, "advance">;
  readonly changes: NodeChanges;
  readonly clock: Clock;
  readonly log: Logger;
}

const LOOK_MS = 500;
/** When a step that broke off, of a store that was away say, is tried again. */
const AGAIN_MS = 5000;
/** So that a burst of orders does not spend a provider's whole rate. */
const AT_ONCE = 16;

/**
 * Brings every open machine on for as long as the server runs: those that were open at its start, and each other as soon as it is
 * ordered. @returns the call that ends it; what is not over goes on at the next start.
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
      .catch((error: unknown) => log.error({ err: error }, "open machines could not be looked for"))
      .finally(() => {
        looking = null;
      });
  };
  // A daemon that enrols, a token that is replaced, a node that is deleted: what was waited for may be there.
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
