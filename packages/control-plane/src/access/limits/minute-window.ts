/** Steps of a second. One more than a minute has, since the oldest may lie half in it. */
const STEP_MS = 1000;
const STEPS = 61;

/**
 * What was counted within the last minute, whenever that is asked: no minute, wherever it begins, holds more than was let in
 * (decisions/0020). Times are milliseconds that never go back.
 */
export class MinuteWindow {
  readonly #steps = new Float64Array(STEPS);
  #newest = 0;
  #sum = 0;

  count(now: number): number {
    this.#advance(now);
    return this.#sum;
  }

  /** @returns the step that it was counted in, to take some of it back. */
  add(amount: number, now: number): number {
    const step = this.#advance(now);
    this.#steps[step % STEPS] = this.#at(step) + amount;
    this.#sum += amount;
    return step;
  }

  /** As far as it is counted still. */
  takeBack(amount: number, step: number, now: number): void {
    this.#advance(now);
    if (step <= this.#newest - STEPS) return;
    const back = Math.min(amount, this.#at(step));
    this.#steps[step % STEPS] = this.#at(step) - back;
    this.#sum -= back;
  }

  /** @returns milliseconds until no more than this is counted, if nothing is added. */
  msUntil(most: number, now: number): number {
    this.#advance(now);
    let left = this.#sum;
    for (let step = this.#newest - STEPS + 1; left > most && step <= this.#newest; step++) {
      left -= this.#at(step);
      if (left <= most) return (step + STEPS) * STEP_MS - now;
    }
    return 0;
  }

  /** @returns the step that it is now. */
  #advance(now: number): number {
    const step = Math.floor(now / STEP_MS);
    if (step - this.#newest >= STEPS) {
      this.#steps.fill(0);
      this.#sum = 0;
    } else {
      for (let passed = this.#newest + 1; passed <= step; passed++) {
        this.#sum -= this.#at(passed);
        this.#steps[passed % STEPS] = 0;
      }
    }
    this.#newest = step;
    return step;
  }

  #at(step: number): number {
    // Steps before the clock's beginning hold nothing.
    return this.#steps[(step + STEPS) % STEPS] ?? 0;
  }
}
