import { DomainError } from "@fairlead/protocol/errors";
import { growingCache } from "../growing-cache.ts";
import { networkOf } from "./client-address.ts";
import { RateLimit } from "./rate-limit.ts";

/** Failures that are let pass; the windows are those of `SignInLimits`. */
export interface SignInLimitOptions {
  readonly perAddress: number;
  readonly perAddressAndAccount: number;
  readonly perAccount: number;
}

const QUARTER_HOUR = 15 * 60;
const HOUR = 3600;
const KNOWN_PLACES = 50_000;

export interface SignInAttempt {
  /** The client's IP address. */
  readonly address: string;
  /** As typed; whether there is such an account makes no difference. */
  readonly account: string;
}

/**
 * Guessing passwords is slow from one place, for one account, and for one account from many places (decisions/0014). The last of
 * these lets an account in from where its person has signed in before, so that strangers cannot lock somebody out.
 */
export class SignInLimits {
  readonly #address: RateLimit;
  readonly #pair: RateLimit;
  readonly #account: RateLimit;
  readonly #knownPlaces = growingCache<true>(KNOWN_PLACES);

  constructor({ perAddress, perAddressAndAccount, perAccount }: SignInLimitOptions) {
    this.#address = new RateLimit({ what: "failed sign-ins from here", limit: perAddress, seconds: QUARTER_HOUR });
    this.#pair = new RateLimit({
      what: "failed sign-ins for this account",
      limit: perAddressAndAccount,
      seconds: QUARTER_HOUR,
    });
    this.#account = new RateLimit({ what: "failed sign-ins for this account", limit: perAccount, seconds: HOUR });
  }

  /**
   * Lets one attempt happen, and counts it where it fails with `invalid_credential`. Counted before it runs: many at once are many.
   * @throws DomainError rate_limit_exceeded, or what the attempt throws.
   */
  async attempt<T>({ address, account }: SignInAttempt, signIn: () => Promise<T>): Promise<T> {
    const place = networkOf(address);
    const name = account.trim().toLowerCase();
    const pair = JSON.stringify([place, name]);
    const known = this.#knownPlaces.has(pair);
    const taken: [RateLimit, string][] = [
      [this.#address, place],
      [this.#pair, pair],
    ];
    if (!known) taken.push([this.#account, name]);
    for (const [limit, key] of taken) await limit.take(key);
    const giveBack = (): Promise<unknown> => Promise.all(taken.map(([limit, key]) => limit.giveBack(key)));
    try {
      const result = await signIn();
      await giveBack();
      await this.#pair.forget(pair);
      this.#knownPlaces.set(pair, true);
      return result;
    } catch (error) {
      const wrong = error instanceof DomainError && error.code === "invalid_credential";
      if (!wrong) await giveBack();
      throw error;
    }
  }
}
