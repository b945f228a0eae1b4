import { RateLimit } from "./rate-limit.ts";
import { SignInLimits } from "./sign-in-limits.ts";

/** `rateLimits` in the config: the number per window. */
export interface RateLimitSettings {
  readonly signInsPerAddress: number;
  readonly signInsPerAddressAndAccount: number;
  readonly signInsPerAccount: number;
  readonly linksPerAddress: number;
  readonly daemonsPerAddress: number;
  readonly upgradesPerAddress: number;
  readonly oauthCallsPerAddress: number;
  readonly deviceCodesPerAddress: number;
  readonly deviceCodeTriesPerUser: number;
  readonly invitationsPerUser: number;
}

/** All rate limits of the platform host. Counted in memory, and reset by a restart. */
export interface RateLimits {
  readonly signIn: SignInLimits;
  readonly links: RateLimit;
  readonly forms: RateLimit;
  readonly daemons: RateLimit;
  /** For daemons, and WebSockets to workloads. */
  readonly upgrades: RateLimit;
  readonly oauth: RateLimit;
  readonly deviceCodes: RateLimit;
  readonly deviceCodeTries: RateLimit;
  readonly invitations: RateLimit;
}

const MINUTE = 60;
const QUARTER_HOUR = 15 * MINUTE;
const HOUR = 60 * MINUTE;
/** The lifetime of a device code. */
const DEVICE_CODE_SECONDS = 10 * MINUTE;

export function createRateLimits(settings: RateLimitSettings): RateLimits {
  return {
    signIn: new SignInLimits({
      perAddress: settings.signInsPerAddress,
      perAddressAndAccount: settings.signInsPerAddressAndAccount,
      perAccount: settings.signInsPerAccount,
    }),
    links: new RateLimit({ what: "invalid links", limit: settings.linksPerAddress, seconds: QUARTER_HOUR }),
    forms: new RateLimit({
      what: "unreadable forms",
      limit: settings.signInsPerAddress,
      seconds: QUARTER_HOUR,
    }),
    daemons: new RateLimit({ what: "failed daemon calls", limit: settings.daemonsPerAddress, seconds: MINUTE }),
    upgrades: new RateLimit({ what: "failed upgrades", limit: settings.upgradesPerAddress, seconds: MINUTE }),
    oauth: new RateLimit({ what: "OAuth calls", limit: settings.oauthCallsPerAddress, seconds: MINUTE }),
    deviceCodes: new RateLimit({
      what: "device codes",
      limit: settings.deviceCodesPerAddress,
      seconds: DEVICE_CODE_SECONDS,
    }),
    deviceCodeTries: new RateLimit({
      what: "invalid codes",
      limit: settings.deviceCodeTriesPerUser,
      seconds: QUARTER_HOUR,
    }),
    invitations: new RateLimit({ what: "invitations", limit: settings.invitationsPerUser, seconds: HOUR }),
  };
}
