import { DomainError } from "@fairlead/protocol/errors";

/** One turn at a time in a session (design §7); in memory, since one process serves a store. */

export interface LineLimits {
  /** How long a turn waits for the one before it. */
  readonly waitMs: number;
  /** How many may wait in one session. */
  readonly places: number;
}

export const LINE_LIMITS: LineLimits = { waitMs: 5000, places: 8 };

/** Gives the session to the next in line; repeating it does nothing. */
export type Release = () => void;

interface Waiting {
  readonly enter: (release: Release) => void;
}

const RETRY_SECONDS = 2;

export class SessionLocks {
  readonly #limits: LineLimits;
  /** By session: who waits for it. Only of those that are taken. */
  readonly #lines = new Map<string, Waiting[]>();

  constructor(limits: LineLimits = LINE_LIMITS) {
    this.#limits = limits;
  }

  has(sessionId: string): boolean {
    return this.#lines.has(sessionId);
  }

  /**
   * @param gone aborts the wait: who waited has left.
   * @returns null where it was aborted.
   * @throws DomainError `session_busy` when the session is not free in time.
   */
  async take(sessionId: string, gone: AbortSignal): Promise<Release | null> {
    if (gone.aborted) return null;
    const line = this.#lines.get(sessionId);
    if (line === undefined) {
      this.#lines.set(sessionId, []);
      return this.#releaseOf(sessionId);
    }
    if (line.length >= this.#limits.places) throw busy();
    return await this.#wait(line, gone);
  }

  #wait(line: Waiting[], gone: AbortSignal): Promise<Release | null> {
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        clearTimeout(timer);
        gone.removeEventListener("abort", onGone);
        const at = line.indexOf(waiting);
        if (at !== -1) line.splice(at, 1);
      };
      const waiting: Waiting = {
        enter: (release) => {
          settle();
          resolve(release);
        },
      };
      const onGone = (): void => {
        settle();
        resolve(null);
      };
      const timer = setTimeout(() => {
        settle();
        reject(busy());
      }, this.#limits.waitMs);
      gone.addEventListener("abort", onGone, { once: true });
      line.push(waiting);
    });
  }

  #releaseOf(sessionId: string): Release {
    let released = false;
    return () => {
      if (released) return;
      released = true;
      const next = this.#lines.get(sessionId)?.shift();
      if (next === undefined) this.#lines.delete(sessionId);
      else next.enter(this.#releaseOf(sessionId));
    };
  }
}

function busy(): DomainError {
  const message = "Another turn of this session still runs. Send this one again when it has ended, or stop that one.";
  return new DomainError("session_busy", message, { retryAfterSeconds: RETRY_SECONDS });
}
