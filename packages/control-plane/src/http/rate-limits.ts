import { RateLimit } from "./rate-limit.ts";
import { SignInLimits } from "./sign-in-limits.ts";

/** Settings of `limits` in the config: how many within each window. */
export interface RateLimitSettings {
  readonly signInsPerAddress: number;
  readonly signInsPerAddressAndAccount: number;
  readonly signInsPerAccount: number;
  readonly linksPerAddress: number;
  readonly daemonsPerAddress: number;
  readonly oauthCallsPerAddress: number;
  readonly invitationsPerUser: number;
}

/** Every limit of the platform host. They count in memory: one server, and a restart forgets. */
export interface RateLimits {
  readonly signIn: SignInLimits;
  readonly links: RateLimit;
  readonly daemons: RateLimit;
  readonly oauth: RateLimit;
  readonly invitations: RateLimit;
}

const MINUTE = 60;
const QUARTER_HOUR = 15 * MINUTE;
const HOUR = 60 * MINUTE;

export function createRateLimits(settings: RateLimitSettings): RateLimits {
  return {
    signIn: new SignInLimits({
      perAddress: settings.signInsPerAddress,
      perAddressAndAccount: settings.signInsPerAddressAndAccount,
      perAccount: settings.signInsPerAccount,
    }),
    links: new RateLimit({ what: "links that do not work", limit: settings.linksPerAddress, seconds: QUARTER_HOUR }),
    daemons: new RateLimit({ what: "failed calls of daemons", limit: settings.daemonsPerAddress, seconds: MINUTE }),
    oauth: new RateLimit({ what: "calls of programs", limit: settings.oauthCallsPerAddress, seconds: MINUTE }),
    invitations: new RateLimit({ what: "invitations", limit: settings.invitationsPerUser, seconds: HOUR }),
  };
}
