import type { Clock } from "../values/clock.ts";
import { encodeId, type IdSource } from "../values/ids.ts";

/** Time that only the test moves, and ids in order. */

export class TestClock implements Clock {
  #now = Date.UTC(2026, 0, 1);

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#now;
  }

  advance(milliseconds: number): void {
    this.#now += milliseconds;
  }
}

/** Ids that sort in the order they were made. @param series tells two sources that write into one store apart. */
export function countingIds(series = 0): IdSource {
  let count = 0;
  return {
    next: (kind) => {
      count += 1;
      return encodeId(kind, count, new Uint8Array(10).fill(series));
    },
  };
}
