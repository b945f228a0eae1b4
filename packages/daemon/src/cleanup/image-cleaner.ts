import type { Clock } from "@fairlead/protocol/values/clock";
import type { DesiredState } from "@fairlead/protocol/workload";
import { bytesAboveLowMark, bytesToFree, type DiskSpace, sizeText } from "../host/disk-rules.ts";
import { type DaemonLog, reasonOf } from "../process/log.ts";
import { sleep, type Timers } from "../process/timers.ts";
import { type ContainerRuntime, RuntimeError } from "../runtime/container-runtime.ts";
import type { ImageMemory } from "./image-memory.ts";
import { type PulledImage, removableImages } from "./image-rules.ts";

export interface ImageCleanerDeps {
  readonly runtime: Pick<ContainerRuntime, "image" | "imagesInUse" | "removeImage">;
  readonly memory: Pick<ImageMemory, "list" | "forget">;
  readonly readSpace: () => Promise<DiskSpace | null>;
  readonly desired: () => DesiredState | null;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: DaemonLog;
  readonly onEvent: (kind: string, workloadId: null, message: string) => void;
}

const EVERY_MS = 5 * 60_000;

/** Removes unused images when the disk fills up: from the upper mark down to the lower one, or when a pull has too little space. */
export class ImageCleaner {
  readonly #deps: ImageCleanerDeps;
  readonly #closing = new AbortController();
  #pause = new AbortController();
  #asked = false;

  constructor(deps: ImageCleanerDeps) {
    this.#deps = deps;
  }

  async run(): Promise<void> {
    while (!this.#closing.signal.aborted) {
      this.#pause = new AbortController();
      if (!this.#asked) await sleep(this.#deps.timers, EVERY_MS, this.#pause.signal);
      if (this.#closing.signal.aborted) return;
      const asked = this.#asked;
      this.#asked = false;
      await this.clean(asked).catch((error: unknown) => {
        this.#deps.log.warn({ reason: reasonOf(error) }, "image clean-up failed");
      });
    }
  }

  /** A pull had too little space: clean up even below the upper mark. */
  wake(): void {
    this.#asked = true;
    this.#pause.abort();
  }

  close(): void {
    this.#closing.abort();
    this.#pause.abort();
  }

  /** One pass. @param asked also below the upper mark. @throws RuntimeError if the container engine does not respond. */
  async clean(asked: boolean): Promise<void> {
    const { readSpace, log, onEvent } = this.#deps;
    const before = await readSpace();
    const wanted = before === null ? 0 : asked ? bytesAboveLowMark(before) : bytesToFree(before);
    if (before === null || wanted === 0) return;
    const removed: string[] = [];
    const skipped = new Set<PulledImage>();
    for (let next = await this.#next(skipped); next !== null; next = await this.#next(skipped)) {
      if (await removePulledImage(this.#deps, next)) removed.push(next.reference);
      else skipped.add(next);
      const space = await readSpace();
      if (space === null || bytesAboveLowMark(space) === 0 || this.#closing.signal.aborted) break;
    }
    const freed = Math.max(0, ((await readSpace())?.freeBytes ?? before.freeBytes) - before.freeBytes);
    const sum = `${sizeText(freed)} of ${sizeText(wanted)} freed, ${removed.length} images removed, ${skipped.size} left in use`;
    log.info({ removed }, `image clean-up: ${sum}`);
    if (removed.length > 0) onEvent("images_removed", null, `${sum}: ${removed.join(", ")}`);
  }

  /** Checked again before each removal: a container may have started in the meantime (kubernetes#123631). */
  async #next(skipped: ReadonlySet<PulledImage>): Promise<PulledImage | null> {
    const { runtime, memory, desired, clock } = this.#deps;
    const inUse = await runtime.imagesInUse();
    const removable = removableImages({ pulled: memory.list(), inUse, desired: desired(), now: clock.now() });
    return removable.find((image) => !skipped.has(image)) ?? null;
  }
}

/** @returns false if the image is in use; the pass continues with the next one (kubernetes#57006). */
export async function removePulledImage(
  { runtime, memory }: Pick<ImageCleanerDeps, "memory"> & { runtime: Pick<ContainerRuntime, "image" | "removeImage"> },
  image: PulledImage,
): Promise<boolean> {
  try {
    const named = await runtime.image(image.reference);
    const present = named?.id === image.id ? named : await runtime.image(image.id);
    // Skip names that moved to another image, and images that got another name.
    if (named?.id === image.id) await runtime.removeImage(image.reference);
    else if (present !== null && present.tags.length === 0) await runtime.removeImage(image.id);
    memory.forget(image);
    return present !== null;
  } catch (error) {
    if (error instanceof RuntimeError && (error.kind === "conflict" || error.kind === "rejected")) return false;
    throw error;
  }
}
