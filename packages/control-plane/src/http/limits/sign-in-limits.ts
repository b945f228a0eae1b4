import { growingCache } from "@fairlead/hosting/growing-cache";
import { DomainError } from "@fairlead/protocol/errors";
import { networkOf } from "./client-address.ts";
import { RateLimit } from "./rate-limit.ts";

/** Allowed failures; `SignInLimits` defines the windows. */
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
  /** As entered, whether or not the account exists. */
  readonly account: string;
}

/**
 * Limits password guesses per address, per account, and per account across addresses (decisions/0014). The last exempts addresses
 * where the user has signed in before, so that strangers cannot lock an account.
 */
export class SignInLimits {
  readonly #address: RateLimit;
  readonly #pair: RateLimit;
  readonly #account: RateLimit;
  readonly #knownPlaces = growingCache<true>(KNOWN_PLACES);

  constructor({ perAddress, perAddressAndAccount, perAccount }: SignInLimitOptions) {
    this.#address = new RateLimit({
      what: "failed sign-ins from this address",
      limit: perAddress,
      seconds: QUARTER_HOUR,
    });
    this.#pair = new RateLimit({
      what: "failed sign-ins for this account",
      limit: perAddressAndAccount,
      seconds: QUARTER_HOUR,
    });
    this.#account = new RateLimit({ what: "failed sign-ins for this account", limit: perAccount, seconds: HOUR });
  }

  /**
   * Runs one attempt and counts an `invalid_credential` failure. Counted in advance, so that concurrent attempts count.
   * @throws DomainError rate_limit_exceeded, or the error of the attempt.
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
