import { YamuxViolation } from "./frames.ts";

/** Useless frames that the other side may send in a burst, and per second after that. */
const BURST = 10_000;
const PER_SECOND = 1000;
/** A frame for a closed stream costs one more unit per this many bytes. */
const BYTES_PER_UNIT = 4096;
/** What can still be in flight for a stream that this side resets: its window and as many small frames. */
const UNITS_PER_RESET = 128;

/** More useless frames arrived than the session's calls can explain. */
export class FrameFlood extends YamuxViolation {
  override readonly name = "FrameFlood";
}

/**
 * Limits frames that cost time but carry nothing for a call: pings, empty frames, unneeded window updates, and frames for closed
 * streams. A token bucket that reads the clock only when empty.
 */
export class FrameBudget {
  readonly #clock: { monotonic(): number };
  #units = BURST;
  #filledAt: number;

  constructor(clock: { monotonic(): number }) {
    this.#clock = clock;
    this.#filledAt = clock.monotonic();
  }

  /** @param payloadBytes of a frame for a closed stream. @throws FrameFlood */
  spend(payloadBytes = 0): void {
    this.#units -= 1 + Math.floor(payloadBytes / BYTES_PER_UNIT);
    if (this.#units >= 0) return;
    const now = this.#clock.monotonic();
    this.#units = Math.min(BURST, this.#units + ((now - this.#filledAt) * PER_SECOND) / 1000);
    this.#filledAt = now;
    if (this.#units < 0) throw new FrameFlood("too many frames that serve no call");
  }

  /** This side reset a stream on which the other side may still be sending. */
  onReset(): void {
    this.#units = Math.min(BURST, this.#units + UNITS_PER_RESET);
  }
}
