import type { Clock } from "@fairlead/protocol/clock";
import type { DesiredState } from "@fairlead/protocol/workload";
import { z } from "zod";
import { type Log, reasonOf } from "../log.ts";
import type { Container } from "../runtime/container-runtime.ts";
import type { DurableRecord } from "../state/durable-record.ts";
import type { PulledImage } from "./image-rules.ts";

export const pulledImagesSchema = z.array(
  z.object({
    id: z.string(),
    reference: z.string(),
    workloadId: z.string(),
    pulledAt: z.number(),
    lastUsedAt: z.number(),
  }),
);

export interface ImageMemoryDeps {
  readonly record: DurableRecord<PulledImage[]>;
  readonly clock: Clock;
  readonly log: Log;
}

/** A use is written down again only after so long: what is exact to the hour is exact enough. */
const USE_STEP_MS = 60 * 60_000;

/** Which images this daemon has pulled, through restarts. What it did not pull, or has forgotten, it never removes. */
export class ImageMemory {
  readonly #deps: ImageMemoryDeps;
  #images: readonly PulledImage[] = [];
  #saving: Promise<void> = Promise.resolve();

  constructor(deps: ImageMemoryDeps) {
    this.#deps = deps;
  }

  async load(): Promise<void> {
    this.#images = (await this.#deps.record.load()).value ?? [];
  }

  list(): readonly PulledImage[] {
    return this.#images;
  }

  pulled(image: Pick<PulledImage, "id" | "reference" | "workloadId">): void {
    const now = this.#deps.clock.now();
    this.#replace([...this.#without(image), { ...image, pulledAt: now, lastUsedAt: now }]);
  }

  /** What runs now, and what is wanted, is in use now. */
  used(containers: readonly Container[], desired: DesiredState): void {
    const ids = new Set(containers.map((container) => container.imageId));
    const references = new Set(desired.workloads.map((spec) => spec.image));
    const now = this.#deps.clock.now();
    const isDue = (image: PulledImage): boolean =>
      (ids.has(image.id) || references.has(image.reference)) && now - image.lastUsedAt >= USE_STEP_MS;
    if (!this.#images.some(isDue)) return;
    this.#replace(this.#images.map((image) => (isDue(image) ? { ...image, lastUsedAt: now } : image)));
  }

  forget(image: PulledImage): void {
    this.#replace(this.#without(image));
  }

  /** Resolves when all of it is on disk, as far as it can be. */
  async close(): Promise<void> {
    await this.#saving;
  }

  #without({ id, reference }: Pick<PulledImage, "id" | "reference">): PulledImage[] {
    return this.#images.filter((image) => image.id !== id || image.reference !== reference);
  }

  #replace(images: readonly PulledImage[]): void {
    this.#images = images;
    this.#saving = this.#saving
      .then(() => this.#deps.record.save([...images]))
      .catch((error: unknown) => {
        // After a restart such an image is left alone: a loss of room, never of an image that somebody needs.
        this.#deps.log.warn({ reason: reasonOf(error) }, "could not save which images were pulled");
      });
  }
}
