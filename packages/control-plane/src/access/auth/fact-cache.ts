import { growingCache } from "@fairlead/hosting/growing-cache";
import { DomainError } from "@fairlead/protocol/errors";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { LRUCache } from "lru-cache";

export interface FactCacheOptions<F> {
  /** Reads the store. @returns null if it does not exist, which is never cached. */
  readonly read: (id: string) => Promise<F | null>;
  readonly clock: Clock;
  /** Maximum number of entries; the least recently used is evicted. */
  readonly max: number;
  /** How long an entry stays valid after its read while the store does not respond. Default: not at all. */
  readonly graceMs?: number;
}

interface Known<F> {
  readonly fact: F;
  /** Start of its read, by the monotonic clock. */
  readonly readAt: number;
  askAgainAt: number;
}

/** Maximum age while the store responds. With the next read, a revocation takes effect within a second. */
const BELIEVED_MS = 900;
/** Longer than any read takes. Callers with a cached value continue without it. */
const PATIENCE_MS = 250;
/** Reads are abandoned after this. */
const GIVE_UP_MS = 5000;

/** Caches facts on the path of every call (sessions, nodes, keys): read about once a second, invalidated on change. */
export class FactCache<F extends object> {
  readonly #options: FactCacheOptions<F>;
  readonly #known: LRUCache<string, Known<F>>;
  readonly #readings = new Map<string, Promise<F | null>>();

  constructor(options: FactCacheOptions<F>) {
    this.#options = options;
    this.#known = growingCache(options.max);
  }

  /** Synchronous for cached values, because every call uses it. @throws the store's error, or DomainError `unavailable`. */
  find(id: string): F | Promise<F | null> {
    const known = this.#known.get(id);
    if (known === undefined) return this.#read(id);
    return this.#options.clock.monotonic() < known.askAgainAt ? known.fact : this.#renew(id, known);
  }

  /** Call after the commit of a change. */
  forget(id: string): void {
    this.#known.delete(id);
    // Waiting callers asked before the change; later ones must not share their result.
    this.#readings.delete(id);
  }

  forgetAll(concerned: (fact: F) => boolean): void {
    for (const [id, { fact }] of this.#known.entries()) if (concerned(fact)) this.#known.delete(id);
    this.#readings.clear();
  }

  /** Concurrent callers share one read. */
  #read(id: string): Promise<F | null> {
    return this.#readings.get(id) ?? this.#begin(id);
  }

  async #begin(id: string): Promise<F | null> {
    const readAt = this.#options.clock.monotonic();
    const reading = within(this.#options.read(id), GIVE_UP_MS);
    this.#readings.set(id, reading);
    try {
      const fact = await reading;
      if (this.#readings.get(id) !== reading) return fact;
      if (fact === null) this.#known.delete(id);
      else this.#known.set(id, { fact, readAt, askAgainAt: readAt + BELIEVED_MS });
      return fact;
    } finally {
      if (this.#readings.get(id) === reading) this.#readings.delete(id);
    }
  }

  async #renew(id: string, known: Known<F>): Promise<F | null> {
    const { graceMs = 0, clock } = this.#options;
    if (graceMs === 0) return this.#read(id);
    try {
      return await within(this.#read(id), PATIENCE_MS);
    } catch (error) {
      const now = clock.monotonic();
      // Invalidated during the read.
      if (this.#known.peek(id) !== known || now >= known.readAt + graceMs) throw error;
      known.askAgainAt = now + BELIEVED_MS;
      return known.fact;
    }
  }
}

async function within<T>(promise: Promise<T>, ms: number): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(notAnswered()), ms);
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

function notAnswered(): DomainError {
  return new DomainError("unavailable", "The store does not respond. Retry shortly.", {
    retryAfterSeconds: 1,
  });
}
