import type { Clock } from "@fairlead/protocol/clock";
import { DomainError } from "@fairlead/protocol/errors";

/** Later than anybody is told to come back. */
const MAX_WAIT_SECONDS = 30;

/**
 * How many daemons are let in within a second. After a restart of the server a whole fleet stands at the door: who is turned away is
 * told when the ones before it will be through, so that they come back at about the rate at which they can be served
 * (jenkinsci/swarm-plugin#163).
 */
export class UpgradeAdmission {
  readonly #perSecond: number;
  readonly #clock: Clock;
  readonly #isBehind: () => boolean;
  #free: number;
  /** Turned away, and by now not yet back by what they were told. */
  #waiting = 0;
  #countedAt: number;
  #refused = 0;

  /** @param isBehind whether too many of those who were let in still wait for their first answer: then the rate is more than we can do. */
  constructor(perSecond: number, clock: Clock, isBehind: () => boolean = () => false) {
    this.#perSecond = perSecond;
    this.#clock = clock;
    this.#isBehind = isBehind;
    this.#free = perSecond;
    this.#countedAt = clock.monotonic();
  }

  /** How many were turned away since the start. */
  get refused(): number {
    return this.#refused;
  }

  /** @throws DomainError overloaded, with the time to come back */
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
    throw new DomainError("overloaded", "Too many daemons connect at once. Come back when you are told to.", {
      retryAfterSeconds: Math.min(MAX_WAIT_SECONDS, Math.ceil(this.#waiting / this.#perSecond)),
    });
  }
}
