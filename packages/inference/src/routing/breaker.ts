/** Consecutive failures after which the upstream is paused. */
export const FAILURES_TO_OPEN = 5;
/** Duration of the first pause in milliseconds; doubles with every failed probe. */
export const OPEN_MS = 5000;
export const MAX_OPEN_MS = 60_000;

export type BreakerState = "closed" | "open" | "half_open";

/** Pauses calls to an upstream after consecutive failures, except for one probe at a time. */
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

  /** @returns milliseconds until the next call is allowed; 0: now. */
  msUntilAllowed(now: number): number {
    if (this.#openings === 0) return 0;
    if (now < this.#openUntil) return this.#openUntil - now;
    // A probe has no fixed duration.
    return this.#probing ? OPEN_MS : 0;
  }

  /** Starts a call. @returns whether it is the probe. */
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
    // Failures of calls that started before the pause are no new information.
    const opens = this.#openings === 0 ? this.#failures >= FAILURES_TO_OPEN : probe;
    if (!opens) return;
    this.#openUntil = now + Math.min(MAX_OPEN_MS, OPEN_MS * 2 ** this.#openings);
    this.#openings++;
  }

  /** The probe ended without a result; another one may start. */
  forgetProbe(): void {
    this.#probing = false;
  }
}
