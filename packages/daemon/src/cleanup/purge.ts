import type { ContainerRuntime, Owner } from "../runtime/container-runtime.ts";
import { removePulledImage } from "./image-cleaner.ts";
import type { ImageMemory } from "./image-memory.ts";

export interface PurgeDeps {
  readonly runtime: Pick<
    ContainerRuntime,
    "list" | "stop" | "remove" | "networks" | "removeNetwork" | "image" | "removeImage"
  > & {
    /** @returns the names of volumes in use, which are kept. */
    removeVolumes(owner: Owner): Promise<readonly string[]>;
  };
  readonly owner: Owner;
  readonly memory: Pick<ImageMemory, "list" | "forget">;
}

/** What was removed, and what was kept because something else uses it. */
export interface Purged {
  readonly containers: readonly string[];
  readonly images: readonly string[];
  readonly leftVolumes: readonly string[];
  readonly leftImages: readonly string[];
}

const GRACE_SECONDS = 10;

/** Removes a node's resources from its machine, containers first. @throws RuntimeError, after a partial removal. */
export async function purge({ runtime, owner, memory }: PurgeDeps): Promise<Purged> {
  const containers = await runtime.list(owner);
  for (const { id } of containers) {
    await runtime.stop(id, GRACE_SECONDS);
    await runtime.remove(id);
  }
  for (const { id } of await runtime.networks(owner)) await runtime.removeNetwork(id);
  const leftVolumes = await runtime.removeVolumes(owner);
  const images: string[] = [];
  const leftImages: string[] = [];
  for (const image of memory.list()) {
    const gone = (await removePulledImage({ runtime, memory }, image)) || !memory.list().includes(image);
    (gone ? images : leftImages).push(image.reference);
  }
  return { containers: containers.map(({ name }) => name), images, leftVolumes, leftImages };
}
