import type { DesiredState } from "@fairlead/protocol/workload";
import type { Container, ContainerRuntime, ImageFacts, Owner } from "../runtime/container-runtime.ts";
import { containerName, isOwned } from "../runtime/ownership.ts";

/** What the container engine shows. */
export interface Observed {
  /** Ours, in every state. */
  readonly containers: readonly Container[];
  /** Wanted names that somebody else's container holds. */
  readonly foreign: ReadonlyMap<string, Container>;
  /** Wanted images by reference, and those of our containers by id; null where absent. */
  readonly images: ReadonlyMap<string, ImageFacts | null>;
}

/** @throws RuntimeError where the engine cannot be asked: then nothing is known, and nothing may be concluded (nomad#1859). */
export async function observe(runtime: ContainerRuntime, owner: Owner, desired: DesiredState): Promise<Observed> {
  const containers = await runtime.list(owner);
  const foreign = await findForeign(runtime, { containers, owner, desired });
  const references = [
    ...desired.workloads.map((spec) => spec.image),
    ...containers.map((container) => container.imageId).filter((id) => id !== ""),
  ];
  const images = new Map<string, ImageFacts | null>();
  for (const reference of new Set(references)) images.set(reference, await runtime.image(reference));
  return { containers, foreign, images };
}

interface Wanted {
  readonly containers: readonly Container[];
  readonly owner: Owner;
  readonly desired: DesiredState;
}

async function findForeign(
  runtime: ContainerRuntime,
  { containers, owner, desired }: Wanted,
): Promise<Map<string, Container>> {
  const own = new Set(containers.map((container) => container.name));
  const foreign = new Map<string, Container>();
  for (const spec of desired.workloads) {
    const name = containerName(owner.nodeId, spec);
    if (own.has(name)) continue;
    const holder = await runtime.inspect(name);
    if (holder !== null && !isOwned(holder, owner)) foreign.set(name, holder);
  }
  return foreign;
}
