import type { DesiredState } from "@fairlead/protocol/workload";

/** Which images may go. Pure. */

/** An image that this daemon has pulled. Times are Unix milliseconds. */
export interface PulledImage {
  readonly id: string;
  /** As the workload named it. */
  readonly reference: string;
  readonly workloadId: string;
  readonly pulledAt: number;
  readonly lastUsedAt: number;
}

export interface ImageUse {
  readonly pulled: readonly PulledImage[];
  /** The images of all containers of this machine, by id. */
  readonly inUse: ReadonlySet<string>;
  readonly desired: DesiredState | null;
  readonly now: number;
}

/** Between a pull and its container anything may happen (kubernetes#123631); one just replaced may be wanted back. */
export const MIN_AGE_MS = 60 * 60_000;

/**
 * The least recently used first. Never one that a container has, that the desired state names, that a workload had before
 * its present one and could be rolled back to (coolify#8765), or that is young. Without a desired state none may go.
 */
export function removableImages({ pulled, inUse, desired, now }: ImageUse): PulledImage[] {
  if (desired === null) return [];
  const wanted = new Set(desired.workloads.map((spec) => spec.image));
  const kept = new Set(inUse);
  for (const image of pulled) if (wanted.has(image.reference)) kept.add(image.id);
  for (const { workloadId } of desired.workloads) {
    const former = byUse(pulled.filter((image) => image.workloadId === workloadId && !kept.has(image.id))).at(-1);
    if (former !== undefined) kept.add(former.id);
  }
  return byUse(pulled.filter((image) => !kept.has(image.id) && now - lastNeed(image) >= MIN_AGE_MS));
}

function byUse(images: readonly PulledImage[]): PulledImage[] {
  return images.toSorted((a, b) => lastNeed(a) - lastNeed(b));
}

function lastNeed({ pulledAt, lastUsedAt }: PulledImage): number {
  return Math.max(pulledAt, lastUsedAt);
}
