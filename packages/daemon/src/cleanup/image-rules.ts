import type { DesiredState } from "@fairlead/protocol/workload";

/** Decides which images can be removed. Pure. */

/** An image that this daemon pulled. Times are Unix milliseconds. */
export interface PulledImage {
  readonly id: string;
  /** The workload's image reference. */
  readonly reference: string;
  readonly workloadId: string;
  readonly pulledAt: number;
  readonly lastUsedAt: number;
}

export interface ImageUse {
  readonly pulled: readonly PulledImage[];
  /** IDs of the images of all containers on this machine. */
  readonly inUse: ReadonlySet<string>;
  readonly desired: DesiredState | null;
  readonly now: number;
}

/** Protects images between pull and container creation (kubernetes#123631), and recently replaced ones. */
export const MIN_AGE_MS = 60 * 60_000;

/**
 * Least recently used first. Excludes images that a container uses, that the desired state names, that a workload could be
 * rolled back to (coolify#8765), or that are recent. Without a desired state, none.
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
