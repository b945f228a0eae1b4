import type { Clock } from "@fairlead/protocol/values/clock";

/** One deadline for the whole stop, from the moment that it was requested. */
export class StopDeadline {
  readonly #clock: Clock;
  readonly #ms: number;
  #begun: number | null = null;

  constructor(clock: Clock, ms: number) {
    this.#clock = clock;
    this.#ms = ms;
  }

  begin(): void {
    this.#begun ??= this.#clock.monotonic();
  }

  leftMs(): number {
    const gone = this.#begun === null ? 0 : this.#clock.monotonic() - this.#begun;
    return Math.max(0, this.#ms - gone);
  }
}
