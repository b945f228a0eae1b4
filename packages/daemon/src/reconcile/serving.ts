import type { Container } from "../runtime/container-runtime.ts";
import type { LoopSnapshot } from "./loop.ts";
import { isUp, viewOf } from "./plan/workload-view.ts";

export interface Serving {
  readonly container: Container;
  /** On 127.0.0.1. */
  readonly port: number;
  readonly ready: boolean;
}

/** @returns the container whose logs are the workload's: the desired one, ready or not, before the one it replaces. */
export function findPrinting(
  snapshot: LoopSnapshot | null,
  name: string,
): { readonly id: string; readonly running: boolean; readonly startedAt: string | null } | null {
  const spec = snapshot?.desired.workloads.find((candidate) => candidate.name === name);
  const observed = snapshot?.observed ?? null;
  if (!snapshot || spec === undefined || observed === null) return null;
  const { current, serving, rolledBack } = viewOf(spec, { ...snapshot, observed });
  const container = rolledBack ? serving : (current ?? serving);
  return container && { id: container.id, running: isUp(container), startedAt: container.startedAt };
}

/** @returns the destination of a workload's requests, or null for an unknown workload. */
export function findServing(snapshot: LoopSnapshot | null, name: string): Serving | null {
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
