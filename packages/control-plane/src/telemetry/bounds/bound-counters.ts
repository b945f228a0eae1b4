import type { BoundName } from "./bounds.ts";

/** How often each bound was reached since the start. */
export class BoundCounters {
  readonly #counts = new Map<BoundName, number>();

  reached(bound: BoundName, times = 1): void {
    this.#counts.set(bound, (this.#counts.get(bound) ?? 0) + times);
  }

  get counts(): ReadonlyMap<BoundName, number> {
    return this.#counts;
  }
}
