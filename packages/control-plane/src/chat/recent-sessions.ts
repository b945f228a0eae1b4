import type { Clock } from "@fairlead/protocol/clock";

/**
 * Sessions that first questions have opened and got no answer in, so that their repeats open no others: clients repeat by
 * themselves what was refused or cut off, and may not have seen a session's name. In memory and bounded: a miss costs one session.
 */
export class RecentSessions {
  readonly #clock: Clock;
  readonly #ms: number;
  /** By call, the oldest first. */
  readonly #entries = new Map<string, Entry>();

  /** @param ms for how long one counts. */
  constructor(clock: Clock, ms: number) {
    this.#clock = clock;
    this.#ms = ms;
  }

  remember(call: string, first: FirstTurn): void {
    this.#entries.delete(call);
    this.#entries.set(call, { ...first, until: this.#clock.monotonic() + this.#ms });
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= MOST_ENTRIES) break;
      this.#entries.delete(oldest);
    }
  }

  find(call: string): FirstTurn | null {
    const entry = this.#entries.get(call);
    return entry !== undefined && entry.until > this.#clock.monotonic() ? entry : null;
  }

  forget(call: string): void {
    this.#entries.delete(call);
  }
}

/** A session's first turn. */
export interface FirstTurn {
  readonly sessionId: string;
  readonly turnId: string;
}

interface Entry extends FirstTurn {
  /** Monotonic milliseconds. */
  readonly until: number;
}

const MOST_ENTRIES = 10_000;
