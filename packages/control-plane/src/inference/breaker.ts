/** Failures in a row after which nobody is sent there for a while. */
export const FAILURES_TO_OPEN = 5;
/** How long; twice as long each time that the probe fails too. Milliseconds. */
export const OPEN_MS = 5000;
export const MAX_OPEN_MS = 60_000;

export type BreakerState = "closed" | "open" | "half_open";

/** Keeps calls from a place that failed several times in a row, but for one at a time that finds out whether it is back. */
export class Breaker {
  #failures = 0;
  #openings = 0;
  /** Monotonic milliseconds. */
  #openUntil = 0;
  #probing = false;

  state(now: number): BreakerState {
    if (this.#openings === 0) return "closed";
    return now < this.#openUntil ? "open" : "half_open";
  }

  /** @returns milliseconds until the next call may go there; 0: now. */
  msUntilAllowed(now: number): number {
    if (this.#openings === 0) return 0;
    if (now < this.#openUntil) return this.#openUntil - now;
    // The probe takes as long as it takes.
    return this.#probing ? OPEN_MS : 0;
  }

  /** A call goes there. @returns whether it is the one that finds out. */
  begin(now: number): boolean {
    if (this.state(now) !== "half_open" || this.#probing) return false;
    this.#probing = true;
    return true;
  }

  succeeded(): void {
    this.#failures = 0;
    this.#openings = 0;
    this.#probing = false;
  }

  failed(now: number, probe: boolean): void {
    this.#failures++;
    if (probe) this.#probing = false;
    // Calls that were under way when it opened say nothing new.
    const opens = this.#openings === 0 ? this.#failures >= FAILURES_TO_OPEN : probe;
    if (!opens) return;
    this.#openUntil = now + Math.min(MAX_OPEN_MS, OPEN_MS * 2 ** this.#openings);
    this.#openings++;
  }

  /** The probe ended without an outcome: another may go. */
  forgetProbe(): void {
    this.#probing = false;
  }
}
