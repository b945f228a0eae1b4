import { hash } from "node:crypto";
import { growingCache } from "@fairlead/hosting/growing-cache";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { KeyRing } from "./sealing/key-ring.ts";
import type { TokenClaims, TokenService, VerifiedToken } from "./tokens/tokens.ts";

export interface VerifiedTokensOptions {
  readonly tokens: Pick<TokenService, "check">;
  readonly keyRing: Pick<KeyRing, "publicJwks">;
  readonly clock: Clock;
}

const MAX_TOKENS = 50_000;

/**
 * Signed tokens that were verified, by their SHA-256: a signature costs a hundred times what the look-up does. A token is
 * remembered until its end, and no longer than its key is in the ring. What hangs on it (its session, its node) is asked on every call.
 */
export class VerifiedTokens {
  readonly #options: VerifiedTokensOptions;
  readonly #verified = growingCache<VerifiedToken>(MAX_TOKENS);
  readonly #checks = new Map<string, Promise<VerifiedToken>>();
  /** The keys that all of them were verified by. */
  #jwks: object | null = null;

  constructor(options: VerifiedTokensOptions) {
    this.#options = options;
  }

  /** Without a promise where it is known. @throws DomainError `expired_credential`, `invalid_credential` */
  verify(token: string): TokenClaims | Promise<TokenClaims> {
    this.#forgetOtherKeys();
    const digest = hash("sha256", token, "base64url");
    const known = this.#verified.get(digest);
    if (known !== undefined && this.#options.clock.now() < known.goodUntil) return known.claims;
    return this.#check(digest, token);
  }

  async #check(digest: string, token: string): Promise<TokenClaims> {
    const check = this.#checks.get(digest) ?? this.#options.tokens.check(token);
    this.#checks.set(digest, check);
    try {
      const verified = await check;
      if (this.#checks.get(digest) === check) this.#verified.set(digest, verified);
      return verified.claims;
    } finally {
      if (this.#checks.get(digest) === check) this.#checks.delete(digest);
    }
  }

  #forgetOtherKeys(): void {
    const jwks = this.#options.keyRing.publicJwks();
    if (jwks === this.#jwks) return;
    this.#jwks = jwks;
    this.#verified.clear();
    this.#checks.clear();
  }
}
