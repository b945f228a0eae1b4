import { createHash } from "node:crypto";
import { growingCache } from "@fairlead/hosting/growing-cache";
import { DomainError } from "@fairlead/protocol/errors";
import type { LRUCache } from "lru-cache";
import { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";

export interface RateLimitOptions {
  /** Shown to the user: "failed sign-ins for this account". */
  readonly what: string;
  readonly limit: number;
  readonly seconds: number;
  /** Maximum number of tracked keys; beyond it the least recently used one is dropped. */
  readonly maxKeys?: number;
}

const MAX_KEYS = 50_000;

/** A fixed-window rate limit. Rejected attempts do not extend the window. */
export class RateLimit {
  readonly #what: string;
  readonly #limiter: RateLimiterMemory;
  /** Bounds the library's memory, which grows with every key. */
  readonly #keys: LRUCache<string, true>;

  constructor({ what, limit, seconds, maxKeys = MAX_KEYS }: RateLimitOptions) {
    this.#what = what;
    this.#limiter = new RateLimiterMemory({ points: limit, duration: seconds });
    this.#keys = growingCache(maxKeys, {
      dispose: (_value, key, reason) => {
        if (reason === "evict") void this.#limiter.delete(key);
      },
    });
  }

  /** @throws DomainError rate_limit_exceeded */
  async take(key: string): Promise<void> {
    const name = nameOf(key);
    this.#keys.set(name, true);
    try {
      await this.#limiter.consume(name);
    } catch (refused) {
      if (refused instanceof RateLimiterRes) throw this.#exceeded(refused.msBeforeNext / 1000);
      throw refused;
    }
  }

  /** Returns an attempt that succeeded, where only failures count. */
  async giveBack(key: string): Promise<void> {
    const name = nameOf(key);
    const state = await this.#limiter.get(name);
    if (state !== null && state.consumedPoints > 0) await this.#limiter.reward(name);
  }

  async forget(key: string): Promise<void> {
    await this.#limiter.delete(nameOf(key));
  }

  #exceeded(seconds: number): DomainError {
    const retryAfterSeconds = Math.max(1, Math.ceil(seconds));
    return new DomainError(
      "rate_limit_exceeded",
      `Too many ${this.#what}. Try again in ${inWords(retryAfterSeconds)}.`,
      {
        retryAfterSeconds,
        rateLimit: { limit: this.#limiter.points, remaining: 0, resetSeconds: retryAfterSeconds },
      },
    );
  }
}

/** Hashed, so that keys have a fixed length and contain no email address. */
function nameOf(key: string): string {
  return createHash("sha256").update(key).digest("base64url");
}

function inWords(seconds: number): string {
  if (seconds < 120) return seconds === 1 ? "a second" : `${seconds} seconds`;
  return `${Math.ceil(seconds / 60)} minutes`;
}
