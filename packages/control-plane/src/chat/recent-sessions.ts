import type { Clock } from "@fairlead/protocol/clock";

/**
 * Sessions that calls without a session's name have opened a moment ago, so that their repeats open no others: clients repeat
 * by themselves what was refused or cut off, several times within seconds. In memory and bounded: a miss costs an empty session.
 */
export class RecentSessions {
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param ms for how long it counts. */
  remember(call: string, sessionId: string, ms: number): void {
    this.#entries.delete(call);
    this.#entries.set(call, { sessionId, until: this.#clock.monotonic() + ms });
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= MOST_ENTRIES) break;
      this.#entries.delete(oldest);
    }
  }

  find(call: string): string | null {
    const entry = this.#entries.get(call);
    if (entry === undefined) return null;
    if (entry.until > this.#clock.monotonic()) return entry.sessionId;
    this.#entries.delete(call);
    return null;
  }

  forget(call: string): void {
    this.#entries.delete(call);
  }
}

interface Entry {
  readonly sessionId: string;
  /** Monotonic milliseconds. */
  readonly until: number;
}

const MOST_ENTRIES = 10_000;
