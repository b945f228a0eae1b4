import { readFileSync } from "node:fs";
import type { Clock } from "@fairlead/protocol/clock";
import { DomainError } from "@fairlead/protocol/errors";
import * as oidc from "openid-client";
import { z } from "zod";
import { StartError } from "../start-error.ts";
import { oidcCallbackPath } from "./sign-in.ts";
import type { OidcProviderConfig } from "./sign-in-config.ts";

/** What has to come back unchanged from the browser. */
export interface OidcChecks {
  readonly state: string;
  readonly nonce: string;
  readonly codeVerifier: string;
}

/** What a provider vouches for. */
export interface OidcPerson {
  /** The provider's own name for the person; never used again for another. */
  readonly subject: string;
  readonly email: string | null;
  readonly emailVerified: boolean;
  readonly name: string | null;
}

const ANSWER_SECONDS = 10;
const DISCOVERY_MS = 3_600_000;
const claimsSchema = z.object({
  sub: z.string().min(1).max(255),
  email: z.string().optional().catch(undefined),
  // Some providers write it as a text.
  email_verified: z.union([z.boolean(), z.stringbool()]).optional().catch(undefined),
  name: z.string().optional().catch(undefined),
});
type Claims = z.infer<typeof claimsSchema>;

/** One OIDC provider, seen from us as its client: discovery, authorization code with PKCE, state and nonce. */
export class OidcClient {
  readonly provider: OidcProviderConfig;
  readonly #redirectUri: string;
  readonly #clock: Clock;
  readonly #secret: string | undefined;
  #discovered: { readonly config: oidc.Configuration; readonly at: number } | null = null;

  /** @throws StartError when the secret's file cannot be read. */
  constructor(provider: OidcProviderConfig, options: { readonly publicUrl: string; readonly clock: Clock }) {
    this.provider = provider;
    this.#clock = options.clock;
    this.#redirectUri = options.publicUrl + oidcCallbackPath(provider.id);
    this.#secret = provider.clientSecret ?? readSecret(provider);
  }

  /** @returns the provider's page to send the browser to. @throws DomainError unavailable */
  async begin(): Promise<{ readonly location: string; readonly checks: OidcChecks }> {
    const config = await this.#discover();
    const checks = {
      state: oidc.randomState(),
      nonce: oidc.randomNonce(),
      codeVerifier: oidc.randomPKCECodeVerifier(),
    };
    const location = oidc.buildAuthorizationUrl(config, {
      redirect_uri: this.#redirectUri,
      scope: "openid email profile",
      state: checks.state,
      nonce: checks.nonce,
      code_challenge: await oidc.calculatePKCECodeChallenge(checks.codeVerifier),
      code_challenge_method: "S256",
    });
    return { location: location.href, checks };
  }

  /** @param query what the browser came back with. @throws DomainError permission_denied, invalid_credential, unavailable */
  async complete(query: URLSearchParams, checks: OidcChecks): Promise<OidcPerson> {
    const config = await this.#discover();
    try {
      const tokens = await oidc.authorizationCodeGrant(config, new URL(`${this.#redirectUri}?${query.toString()}`), {
        expectedState: checks.state,
        expectedNonce: checks.nonce,
        pkceCodeVerifier: checks.codeVerifier,
        idTokenExpected: true,
      });
      const claims = claimsSchema.parse(tokens.claims());
      if (claims.email !== undefined) return personOf(claims);
      // OIDC Core §5.4: with a code the claims of a scope may be at the userinfo endpoint alone.
      const more = await oidc.fetchUserInfo(config, tokens.access_token, claims.sub);
      return personOf({ ...claimsSchema.parse(more), sub: claims.sub });
    } catch (error) {
      throw this.#explain(error);
    }
  }

  async #discover(): Promise<oidc.Configuration> {
    const now = this.#clock.monotonic();
    if (this.#discovered && now - this.#discovered.at < DISCOVERY_MS) return this.#discovered.config;
    const { issuer, clientId } = this.provider;
    const url = new URL(issuer);
    try {
      const config = await oidc.discovery(url, clientId, undefined, this.#authentication(), {
        timeout: ANSWER_SECONDS,
        execute: url.protocol === "http:" ? [oidc.allowInsecureRequests] : [],
      });
      this.#discovered = { config, at: now };
      return config;
    } catch (cause) {
      throw this.#away(cause);
    }
  }

  #authentication(): oidc.ClientAuth {
    return this.#secret === undefined ? oidc.None() : oidc.ClientSecretBasic(this.#secret);
  }

  #explain(error: unknown): DomainError {
    const { name } = this.provider;
    if (error instanceof oidc.AuthorizationResponseError) {
      const note = `${error.error}: ${error.error_description ?? ""}`;
      return new DomainError("permission_denied", `The sign-in was refused or broken off at ${name}.`, {
        cause: error,
        note,
      });
    }
    if (error instanceof oidc.ResponseBodyError || error instanceof oidc.ClientError || error instanceof z.ZodError) {
      const message = `What ${name} answered is not to be trusted. Begin again; if it goes on, tell an administrator.`;
      return new DomainError("invalid_credential", message, { cause: error, note: error.message });
    }
    return this.#away(error);
  }

  #away(cause: unknown): DomainError {
    const message = `${this.provider.name} does not answer just now. Try again shortly.`;
    const note = cause instanceof Error ? cause.message : undefined;
    return new DomainError("unavailable", message, { cause, note, retryAfterSeconds: 10 });
  }
}

function personOf({ sub, email, email_verified: verified, name }: Claims): OidcPerson {
  return { subject: sub, email: email ?? null, emailVerified: verified === true, name: name ?? null };
}

function readSecret({ id, clientSecretFile }: OidcProviderConfig): string | undefined {
  if (clientSecretFile === undefined) return undefined;
  try {
    return readFileSync(clientSecretFile, "utf8").trim();
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new StartError(`The client secret of the OIDC provider ${id} cannot be read: ${why}.`);
  }
}
