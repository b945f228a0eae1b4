import type { Container } from "../runtime/container-runtime.ts";
import type { Snapshot } from "./loop.ts";
import { isUp, viewOf } from "./workload-view.ts";

export interface Serving {
  readonly container: Container;
  /** On 127.0.0.1. */
  readonly port: number;
  readonly ready: boolean;
}

/** @returns the container whose output is a workload's: the one that is asked for, ready or not, before one that it replaces. */
export function findPrinting(
  snapshot: Snapshot | null,
  name: string,
): { readonly id: string; readonly running: boolean; readonly startedAt: string | null } | null {
  const spec = snapshot?.desired.workloads.find((candidate) => candidate.name === name);
  const observed = snapshot?.observed ?? null;
  if (!snapshot || spec === undefined || observed === null) return null;
  const { current, serving, rolledBack } = viewOf(spec, { ...snapshot, observed });
  const container = rolledBack ? serving : (current ?? serving);
  return container && { id: container.id, running: isUp(container), startedAt: container.startedAt };
}

/** @returns where requests for a workload go now, or null for a name that this node does not run. */
export function findServing(snapshot: Snapshot | null, name: string): Serving | null {
  const spec = snapshot?.desired.workloads.find((candidate) => candidate.name === name);
  const observed = snapshot?.observed ?? null;
  if (!snapshot || spec === undefined || observed === null) return null;
  const { serving } = viewOf(spec, { ...snapshot, observed });
  if (serving === null || serving.hostPort === null) return null;
  return {
    container: serving,
    port: serving.hostPort,
    ready: !snapshot.draining.has(serving.id) && isUp(serving) && snapshot.health(serving).state === "ready",
  };
}
