import type { Kysely } from "kysely";
import type { AuditService } from "../../access/audit/audit-service.ts";
import type { SecretSealer } from "../../access/auth/sealing/sealer.ts";
import type { TokenService } from "../../access/auth/tokens/tokens.ts";
import type { Database } from "../../installation/db/tables/schema.ts";
import type { Ports } from "../../installation/installation-room.ts";
import { directFetch, type OutgoingFetch } from "../../installation/outgoing/outgoing-fetch.ts";
import type { Log } from "../../installation/process/log.ts";
import type { BoundCounters } from "../../telemetry/bounds/bound-counters.ts";
import type { SessionService } from "../users/session-service.ts";
import type { UserService } from "../users/user-service.ts";
import { HashingLine } from "./hashing-line.ts";
import { createLibrary } from "./library/library.ts";
import { LibraryCalls } from "./library/library-calls.ts";
import { CLI_CLIENT } from "./oauth/oauth.ts";
import { OAuthService } from "./oauth/oauth-service.ts";
import { OAuthTokenService } from "./oauth/oauth-token-service.ts";
import { OidcClient } from "./oidc/oidc-client.ts";
import { OidcService } from "./oidc/oidc-service.ts";
import { PasswordHasher } from "./password-hasher.ts";
import type { SignInSettings } from "./sign-in-config.ts";
import { SignInService } from "./sign-in-service.ts";

export interface SignInOptions extends Ports {
  readonly db: Kysely<Database>;
  readonly users: UserService;
  readonly sessions: SessionService;
  readonly tokens: TokenService;
  readonly audit: AuditService;
  readonly sealer: SecretSealer;
  /** Of the installation, and of nothing else. */
  readonly signInSecret: string;
  readonly randomBytes: (n: number) => Uint8Array;
  readonly log: Log;
  readonly bounds: Pick<BoundCounters, "reached">;
  readonly publicUrl: string;
  /** For OIDC issuers. */
  readonly fetch?: OutgoingFetch;
  readonly settings: SignInSettings;
}

export type SignInServices = ReturnType<typeof createSignInServices>;

const DAY_SECONDS = 24 * 3600;

/** Call `oauth.start()` before the first request. @throws StartError */
export function createSignInServices(deps: SignInOptions) {
  const { db, settings, signInSecret: secret, publicUrl, clock, bounds, fetch = directFetch } = deps;
  const sessionSeconds = settings.sessionDays * DAY_SECONDS;
  const calls = new LibraryCalls(db);
  const library = createLibrary({ ...deps, calls, secret, sessionSeconds });
  const signIn = new SignInService({
    ...deps,
    library,
    calls,
    hasher: new PasswordHasher(secret, new HashingLine({ onRefused: () => deps.bounds?.reached("password_hashing") })),
    passwordEnabled: settings.password,
  });
  const oidcClients = settings.oidc.map((provider) => new OidcClient(provider, { publicUrl, clock, bounds, fetch }));
  const clients = [CLI_CLIENT, ...settings.clients];
  return {
    signIn,
    oidc: new OidcService({ ...deps, clients: oidcClients, signIn }),
    oauth: new OAuthService({ ...deps, library, calls, signIn, clients }),
    oauthTokens: new OAuthTokenService({ ...deps, library, calls, clients, sessionSeconds }),
  };
}
