import type { DesiredState } from "@fairlead/protocol/workload";
import type { Container, ContainerRuntime, ImageFacts, Network, Owner } from "../runtime/container-runtime.ts";
import { containerName, isOwned } from "../runtime/ownership.ts";

/** The state of the container engine. */
export interface Observed {
  /** This node's containers, in any state. */
  readonly containers: readonly Container[];
  /** This node's networks, by name. */
  readonly networks: ReadonlyMap<string, Network>;
  /** Desired names that a foreign container uses. */
  readonly foreign: ReadonlyMap<string, Container>;
  /** Desired images by reference and the containers' images by ID; null if absent. */
  readonly images: ReadonlyMap<string, ImageFacts | null>;
}

/** @throws RuntimeError if the engine does not respond; nothing may be concluded then (nomad#1859). */
export async function observe(runtime: ContainerRuntime, owner: Owner, desired: DesiredState): Promise<Observed> {
  const containers = await runtime.list(owner);
  // After the containers, so that their networks are included.
  const networks = new Map((await runtime.networks(owner)).map((network) => [network.name, network]));
  const foreign = await findForeign(runtime, { containers, owner, desired });
  const references = [
    ...desired.workloads.map((spec) => spec.image),
    ...containers.map((container) => container.imageId).filter((id) => id !== ""),
  ];
  const images = new Map<string, ImageFacts | null>();
  for (const reference of new Set(references)) images.set(reference, await runtime.image(reference));
  return { containers, networks, foreign, images };
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
