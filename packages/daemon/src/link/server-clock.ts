import type { Clock } from "@fairlead/protocol/values/clock";

/** Estimates the platform host's time: machines may boot with a wrong clock (harvester#2860). */
export class ServerClock {
  readonly #clock: Clock;
  #serverMinusMonotonic: number | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Reads an HTTP `Date` header, which has a resolution of one second. */
  learnFromDate(header: string | undefined): void {
    const time = Date.parse(header ?? "");
    if (!Number.isNaN(time)) this.learn(time + 500);
  }

  /** @param serverTime current Unix milliseconds on the server. */
  learn(serverTime: number): void {
    this.#serverMinusMonotonic = serverTime - this.#clock.monotonic();
  }

  /** Unix milliseconds on the server's clock; this node's clock before the first contact. */
  now(): number {
    if (this.#serverMinusMonotonic === null) return this.#clock.now();
    return this.#serverMinusMonotonic + this.#clock.monotonic();
  }

  /** Milliseconds that this node's clock is ahead; null before the first contact. */
  skew(): number | null {
    return this.#serverMinusMonotonic === null ? null : Math.round(this.#clock.now() - this.now());
  }
}
