/** How long a call has been silent. Traffic only sets flags, which each look takes back: reading the clock for every piece would cost more than it tells. */
export class CallSilence {
  /** Whether anything moved, in either direction. */
  active = false;
  /** Whether anything was sent to the caller, who may hear nothing of what an upstream says. */
  spoke = false;
  #activeAt: number;
  #spokeAt: number;

  /** @param now monotonic milliseconds. */
  constructor(now: number) {
    this.#activeAt = now;
    this.#spokeAt = now;
  }

  /** Something was sent to the caller that no traffic brought. */
  told(now: number): void {
    this.#spokeAt = now;
  }

  look(now: number): { readonly quietMs: number; readonly unspokenMs: number } {
    if (this.active) this.#activeAt = now;
    if (this.spoke) this.#spokeAt = now;
    this.active = false;
    this.spoke = false;
    return { quietMs: now - this.#activeAt, unspokenMs: now - this.#spokeAt };
  }
}
