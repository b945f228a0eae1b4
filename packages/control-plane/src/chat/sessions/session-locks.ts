import { DomainError } from "@fairlead/protocol/errors";

/** One turn at a time per session. In memory, because one process serves a store. */

export interface LineLimits {
  /** How long a turn waits for the previous one. */
  readonly waitMs: number;
  /** Maximum number of waiting turns per session. */
  readonly places: number;
}

export const LINE_LIMITS: LineLimits = { waitMs: 5000, places: 8 };

/** Passes the session to the next waiting turn. Idempotent. */
export type Release = () => void;

interface Waiting {
  readonly enter: (release: Release) => void;
}

const RETRY_SECONDS = 2;

export class SessionLocks {
  readonly #limits: LineLimits;
  /** Waiting turns by session; only locked sessions. */
  readonly #lines = new Map<string, Waiting[]>();

  constructor(limits: LineLimits = LINE_LIMITS) {
    this.#limits = limits;
  }

  has(sessionId: string): boolean {
    return this.#lines.has(sessionId);
  }

  /**
   * @param gone aborts the wait when the caller disconnects.
   * @returns null if aborted.
   * @throws DomainError `session_busy` if the session is not free in time.
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
  const message = "Another turn of this session is still running. Retry when it has finished, or stop it.";
  return new DomainError("session_busy", message, { retryAfterSeconds: RETRY_SECONDS });
}
