import type { Clock } from "@fairlead/protocol/clock";
import type { IdSource } from "@fairlead/protocol/ids";
import type { Kysely } from "kysely";
import type { AuditService } from "../audit/audit-service.ts";
import type { SecretSealer } from "../auth/sealer.ts";
import type { TokenService } from "../auth/tokens.ts";
import type { Database } from "../db/schema.ts";
import type { Log } from "../log.ts";
import type { SessionService } from "../users/session-service.ts";
import type { UserService } from "../users/user-service.ts";
import { createLibrary } from "./library.ts";
import { LibraryCalls } from "./library-calls.ts";
import { CLI_CLIENT } from "./oauth.ts";
import { OAuthService } from "./oauth-service.ts";
import { OAuthTokenService } from "./oauth-token-service.ts";
import { OidcClient } from "./oidc-client.ts";
import { OidcService } from "./oidc-service.ts";
import { PasswordHasher } from "./password-hasher.ts";
import type { SignInSettings } from "./sign-in-config.ts";
import { SignInService } from "./sign-in-service.ts";

export interface SignInDeps {
  readonly db: Kysely<Database>;
  readonly users: UserService;
  readonly sessions: SessionService;
  readonly tokens: TokenService;
  readonly audit: AuditService;
  readonly sealer: SecretSealer;
  /** Of the installation, and of nothing else. */
  readonly signInSecret: string;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly randomBytes: (n: number) => Uint8Array;
  readonly log: Log;
  readonly publicUrl: string;
  readonly settings: SignInSettings;
}

export interface SignInServices {
  readonly signIn: SignInService;
  readonly oidc: OidcService;
  readonly oauth: OAuthService;
  readonly oauthTokens: OAuthTokenService;
}

const DAY_SECONDS = 24 * 3600;

/** Composition of this room. Call `oauth.start()` before the first request. @throws StartError */
export function createSignInServices(deps: SignInDeps): SignInServices {
  const { db, settings, signInSecret: secret, publicUrl, clock } = deps;
  const sessionSeconds = settings.sessionDays * DAY_SECONDS;
  const calls = new LibraryCalls(db);
  const library = createLibrary({ ...deps, calls, secret, sessionSeconds });
  const signIn = new SignInService({
    ...deps,
    library,
    calls,
    hasher: new PasswordHasher(secret),
    passwordEnabled: settings.password,
  });
  const oidcClients = settings.oidc.map((provider) => new OidcClient(provider, { publicUrl, clock }));
  const clients = [CLI_CLIENT, ...settings.clients];
  return {
    signIn,
    oidc: new OidcService({ ...deps, clients: oidcClients, signIn }),
    oauth: new OAuthService({ ...deps, library, calls, signIn, clients }),
    oauthTokens: new OAuthTokenService({ ...deps, library, calls, clients, sessionSeconds }),
  };
}
