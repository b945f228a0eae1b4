import { DomainError } from "@fairlead/protocol/errors";
import type { Clock } from "@fairlead/protocol/values/clock";

/** Longer than any retry delay. */
const MAX_WAIT_SECONDS = 30;

/**
 * Limits daemon connections per second. After a restart the whole fleet reconnects: rejected daemons get a time to
 * retry, so that they return at the rate at which they can be served (jenkinsci/swarm-plugin#163).
 */
export class UpgradeAdmission {
  readonly #perSecond: number;
  readonly #clock: Clock;
  readonly #isBehind: () => boolean;
  #free: number;
  /** Rejected daemons that have not returned yet. */
  #waiting = 0;
  #countedAt: number;
  #refused = 0;

  /** @param isBehind whether too many admitted daemons still wait for their first response, so that the rate must drop. */
  constructor(perSecond: number, clock: Clock, isBehind: () => boolean = () => false) {
    this.#perSecond = perSecond;
    this.#clock = clock;
    this.#isBehind = isBehind;
    this.#free = perSecond;
    this.#countedAt = clock.monotonic();
  }

  /** Number of rejections since the start. */
  get refused(): number {
    return this.#refused;
  }

  /** @throws DomainError overloaded, with the time to reconnect */
  admit(): void {
    const now = this.#clock.monotonic();
    const came = ((now - this.#countedAt) / 1000) * this.#perSecond;
    this.#countedAt = now;
    this.#free = Math.min(this.#perSecond, this.#free + came);
    this.#waiting = Math.max(0, this.#waiting - came);
    if (this.#free >= 1 && !this.#isBehind()) {
      this.#free -= 1;
      return;
    }
    this.#waiting += 1;
    this.#refused += 1;
    throw new DomainError("overloaded", "Too many daemons are connecting. Reconnect after the given time.", {
      retryAfterSeconds: Math.min(MAX_WAIT_SECONDS, Math.ceil(this.#waiting / this.#perSecond)),
    });
  }
}
