import { readFileSync } from "node:fs";
import { DomainError } from "@fairlead/protocol/errors";
import type { Clock } from "@fairlead/protocol/values/clock";
import * as oidc from "openid-client";
import { z } from "zod";
import { directFetch, type OutgoingFetch } from "../../../installation/outgoing/outgoing-fetch.ts";
import { StartError } from "../../../installation/process/start-error.ts";
import type { BoundCounters } from "../../../telemetry/bounds/bound-counters.ts";
import { oidcCallbackPath } from "../sign-in.ts";
import type { OidcProviderConfig } from "../sign-in-config.ts";
import { boundedFetch } from "./oidc-fetch.ts";

/** Values that the browser must return unchanged. */
export interface OidcChecks {
  readonly state: string;
  readonly nonce: string;
  readonly codeVerifier: string;
}

/** Facts asserted by a provider. */
export interface OidcPerson {
  /** The provider's unique id of the user. */
  readonly subject: string;
  readonly email: string | null;
  readonly emailVerified: boolean;
  readonly name: string | null;
}

const ANSWER_SECONDS = 10;
const DISCOVERY_MS = 3_600_000;
/** Limit of concurrent callbacks, because anyone can send codes and each is checked with the provider. */
const MAX_COMPLETING = 32;
const claimsSchema = z.object({
  sub: z.string().min(1).max(255),
  email: z.string().optional().catch(undefined),
  // Some providers send a string.
  email_verified: z.union([z.boolean(), z.stringbool()]).optional().catch(undefined),
  name: z.string().optional().catch(undefined),
});
type Claims = z.infer<typeof claimsSchema>;

export interface OidcClientOptions {
  readonly publicUrl: string;
  readonly clock: Clock;
  readonly bounds: Pick<BoundCounters, "reached">;
  readonly fetch?: OutgoingFetch;
  /** For tests: timeout of one response. */
  readonly answerSeconds?: number;
}

/** Client of one OIDC provider: discovery, authorization code with PKCE, state and nonce. */
export class OidcClient {
  readonly provider: OidcProviderConfig;
  readonly #redirectUri: string;
  readonly #clock: Clock;
  readonly #secret: string | undefined;
  readonly #bounds: Pick<BoundCounters, "reached">;
  readonly #fetch: OutgoingFetch;
  readonly #answerSeconds: number;
  #discovered: { readonly config: oidc.Configuration; readonly at: number } | null = null;
  #discovering: Promise<oidc.Configuration> | null = null;
  #completing = 0;

  /** @throws StartError if the secret's file cannot be read. */
  constructor(provider: OidcProviderConfig, options: OidcClientOptions) {
    this.provider = provider;
    this.#clock = options.clock;
    this.#bounds = options.bounds;
    this.#fetch = options.fetch ?? directFetch;
    this.#answerSeconds = options.answerSeconds ?? ANSWER_SECONDS;
    this.#redirectUri = options.publicUrl + oidcCallbackPath(provider.id);
    this.#secret = provider.clientSecret ?? readSecret(provider);
  }

  /** @returns the provider's sign-in URL. @throws DomainError unavailable */
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

  /** @param query of the callback. @throws DomainError permission_denied, invalid_credential, unavailable, overloaded */
  async complete(query: URLSearchParams, checks: OidcChecks): Promise<OidcPerson> {
    if (this.#completing >= MAX_COMPLETING) {
      this.#bounds.reached("oidc_sign_ins");
      const message = `Too many users are signing in with ${this.provider.name}. Try again shortly.`;
      throw new DomainError("overloaded", message, { retryAfterSeconds: 10 });
    }
    this.#completing += 1;
    try {
      return await this.#complete(query, checks);
    } finally {
      this.#completing -= 1;
    }
  }

  async #complete(query: URLSearchParams, checks: OidcChecks): Promise<OidcPerson> {
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
      // OIDC Core §5.4: claims may be available only at the userinfo endpoint.
      const more = await oidc.fetchUserInfo(config, tokens.access_token, claims.sub);
      return personOf({ ...claimsSchema.parse(more), sub: claims.sub });
    } catch (error) {
      throw this.#explain(error);
    }
  }

  /** Concurrent callers share one request. */
  async #discover(): Promise<oidc.Configuration> {
    const now = this.#clock.monotonic();
    if (this.#discovered && now - this.#discovered.at < DISCOVERY_MS) return this.#discovered.config;
    this.#discovering ??= this.#fetchDiscovery().finally(() => {
      this.#discovering = null;
    });
    return this.#discovering;
  }

  async #fetchDiscovery(): Promise<oidc.Configuration> {
    const { issuer, clientId } = this.provider;
    const url = new URL(issuer);
    try {
      const config = await oidc.discovery(url, clientId, undefined, this.#authentication(), {
        timeout: this.#answerSeconds,
        [oidc.customFetch]: boundedFetch(url, { bounds: this.#bounds, fetch: this.#fetch }),
        // Otherwise the ID token is trusted because of TLS only (OIDC Core §3.1.3.7).
        execute: [oidc.enableNonRepudiationChecks, ...(url.protocol === "http:" ? [oidc.allowInsecureRequests] : [])],
      });
      this.#discovered = { config, at: this.#clock.monotonic() };
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
      return new DomainError("permission_denied", `The sign-in was denied or canceled at ${name}.`, {
        cause: error,
        note,
      });
    }
    if (error instanceof oidc.ClientError && error.code === "OAUTH_TIMEOUT") return this.#away(error);
    if (error instanceof oidc.ResponseBodyError || error instanceof oidc.ClientError || error instanceof z.ZodError) {
      const message = `The response from ${name} is invalid. Start again. If the problem persists, contact an administrator.`;
      return new DomainError("invalid_credential", message, { cause: error, note: reasonOf(error) });
    }
    return this.#away(error);
  }

  #away(cause: unknown): DomainError {
    const message = `${this.provider.name} does not respond. Try again shortly.`;
    const note = reasonOf(cause);
    return new DomainError("unavailable", message, { cause, note, retryAfterSeconds: 10 });
  }
}

/** The library's messages are generic; the reason is in their cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
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
