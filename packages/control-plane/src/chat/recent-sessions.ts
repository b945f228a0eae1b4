import type { Clock } from "@fairlead/protocol/clock";

/**
 * Sessions that calls without a session's name have opened a moment ago, so that their repeats open no others: clients repeat
 * by themselves what was refused or cut off, several times within seconds. In memory and bounded: a miss costs an empty session.
 */
export class RecentSessions {
  readonly #clock: Clock;
  /** By call, the oldest first. A promise, so that two repeats at once find one session. */
  readonly #entries = new Map<string, Entry>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param ms for how long it counts. */
  remember(call: string, sessionId: string | Promise<string>, ms: number): void {
    const opened = Promise.resolve(sessionId);
    // Whoever opens it is told; nobody else need be there.
    opened.catch(() => undefined);
    this.#entries.delete(call);
    this.#entries.set(call, { sessionId: opened, until: this.#clock.monotonic() + ms });
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= MOST_ENTRIES) break;
      this.#entries.delete(oldest);
    }
  }

  /** @throws whatever the opening of the session did. */
  async find(call: string): Promise<string | null> {
    const entry = this.#entries.get(call);
    if (entry === undefined) return null;
    if (entry.until > this.#clock.monotonic()) return await entry.sessionId;
    this.#entries.delete(call);
    return null;
  }

  forget(call: string): void {
    this.#entries.delete(call);
  }
}

interface Entry {
  readonly sessionId: Promise<string>;
  /** Monotonic milliseconds. */
  readonly until: number;
}

const MOST_ENTRIES = 10_000;
