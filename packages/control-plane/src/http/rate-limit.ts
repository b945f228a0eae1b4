import { createHash } from "node:crypto";
import { DomainError } from "@fairlead/protocol/errors";
import type { LRUCache } from "lru-cache";
import { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";
import { growingCache } from "../growing-cache.ts";

export interface RateLimitOptions {
  /** For the person who hits it: "failed sign-ins for this account". */
  readonly what: string;
  readonly limit: number;
  readonly seconds: number;
  /** How many keys are counted at the same time; beyond them the one that was quiet for longest is forgotten. */
  readonly maxKeys?: number;
}

const MAX_KEYS = 50_000;

/** How often something may be tried, in windows of fixed length. A try that is refused does not make the window longer. */
export class RateLimit {
  readonly #what: string;
  readonly #limiter: RateLimiterMemory;
  /** The library's memory grows with every key that it is asked for; this bounds it. */
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

  /** For a try that turned out well, where failures alone count. */
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

/** Keys are of one length however long what was typed, and hold nobody's e-mail address. */
function nameOf(key: string): string {
  return createHash("sha256").update(key).digest("base64url");
}

function inWords(seconds: number): string {
  if (seconds < 120) return seconds === 1 ? "a second" : `${seconds} seconds`;
  return `${Math.ceil(seconds / 60)} minutes`;
}
