/** Histogram of plain numbers. Recording costs two additions; rendering happens on request. */
export class Distribution {
  /** Upper bounds, ascending. */
  readonly bounds: readonly number[];
  readonly #counts: Float64Array;
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.#counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    let bucket = 0;
    while (bucket < this.bounds.length && value > (this.bounds[bucket] ?? 0)) bucket++;
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#sum += value;
  }

  get sum(): number {
    return this.#sum;
  }

  get count(): number {
    return this.#counts.reduce((sum, count) => sum + count, 0);
  }

  /** For each bound, the number of values up to it. */
  cumulative(): number[] {
    let sum = 0;
    return this.bounds.map((_bound, bucket) => {
      sum += this.#counts[bucket] ?? 0;
      return sum;
    });
  }
}

/** Seconds, from a fast response to a long stream. */
export const REQUEST_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
