import type { Clock } from "@fairlead/protocol/clock";

/** The platform host's time as this node can tell it: machines boot with clocks far off (harvester#2860). */
export class ServerClock {
  readonly #clock: Clock;
  #serverMinusMonotonic: number | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Learns from an HTTP `Date` header, which is cut to whole seconds. */
  learnFromDate(header: string | undefined): void {
    const time = Date.parse(header ?? "");
    if (!Number.isNaN(time)) this.learn(time + 500);
  }

  /** @param serverTime Unix milliseconds, as the server just said. */
  learn(serverTime: number): void {
    this.#serverMinusMonotonic = serverTime - this.#clock.monotonic();
  }

  /** Unix milliseconds at the server; the node's own clock until the server has been heard. */
  now(): number {
    if (this.#serverMinusMonotonic === null) return this.#clock.now();
    return this.#serverMinusMonotonic + this.#clock.monotonic();
  }

  /** Milliseconds by which this node's clock is ahead; null until the server has been heard. */
  skew(): number | null {
    return this.#serverMinusMonotonic === null ? null : Math.round(this.#clock.now() - this.now());
  }
}
