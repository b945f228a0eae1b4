import type { Clock } from "@fairlead/protocol/values/clock";
import type { DesiredState } from "@fairlead/protocol/workload";
import { z } from "zod";
import { type DaemonLog, reasonOf } from "../process/log.ts";
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
  readonly log: DaemonLog;
}

/** Last uses are recorded with this precision. */
const USE_STEP_MS = 60 * 60_000;

/** Persistent record of the images that this daemon pulled. It never removes others. */
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

  /** Marks running and desired images as in use. */
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

  /** Resolves after the record was written, or failed to be. */
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
        // After a restart the image is not cleaned up, which wastes space but loses nothing.
        this.#deps.log.warn({ reason: reasonOf(error) }, "could not save the record of pulled images");
      });
  }
}
