import type { Clock } from "@fairlead/protocol/clock";
import { DomainError } from "@fairlead/protocol/errors";
import type { LRUCache } from "lru-cache";
import { growingCache } from "../growing-cache.ts";

export interface FactCacheOptions<F> {
  /** Asks the store. @returns null where there is no such thing; that is never remembered. */
  readonly read: (id: string) => Promise<F | null>;
  readonly clock: Clock;
  /** How many are remembered; the least used goes first. */
  readonly max: number;
  /** How long a fact lives on from its reading while the store does not answer. None by default. */
  readonly graceMs?: number;
}

interface Known<F> {
  readonly fact: F;
  /** When its reading began, by the monotonic clock: it may be as old as that. */
  readonly readAt: number;
  askAgainAt: number;
}

/** How old a fact may be while the store answers: with its next reading, not a second (design §5, Revocation). */
const BELIEVED_MS = 900;
/** Longer than any answer takes: whoever can go on without it goes on. */
const PATIENCE_MS = 250;
/** After this an answer is not waited for any more. */
const GIVE_UP_MS = 5000;

/**
 * What calls hang on (sessions, nodes, keys), read from the store about once a second however many calls come, and
 * forgotten at once when it changes.
 */
export class FactCache<F extends object> {
  readonly #options: FactCacheOptions<F>;
  readonly #known: LRUCache<string, Known<F>>;
  readonly #readings = new Map<string, Promise<F | null>>();

  constructor(options: FactCacheOptions<F>) {
    this.#options = options;
    this.#known = growingCache(options.max);
  }

  /** Without a promise where it is known, since that is on every call's way. @throws the store's error, or DomainError `unavailable`. */
  find(id: string): F | Promise<F | null> {
    const known = this.#known.get(id);
    if (known === undefined) return this.#read(id);
    return this.#options.clock.monotonic() < known.askAgainAt ? known.fact : this.#renew(id, known);
  }

  /** To be called after the commit of what changed it. */
  forget(id: string): void {
    this.#known.delete(id);
    // Whoever waits for it asked before the change; nobody after it may be told the same.
    this.#readings.delete(id);
  }

  forgetAll(concerned: (fact: F) => boolean): void {
    for (const [id, { fact }] of this.#known.entries()) if (concerned(fact)) this.#known.delete(id);
    this.#readings.clear();
  }

  /** One reading for all who ask meanwhile. */
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
      // Forgotten meanwhile: nothing is known of it any more.
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
  return new DomainError("unavailable", "The store does not answer just now. Try again shortly.", {
    retryAfterSeconds: 1,
  });
}
