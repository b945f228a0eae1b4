import { createHash } from "node:crypto";

/** Names and facts of the OAuth server. Pure. */

export const OAUTH_PATHS = {
  authorize: "/v1/oauth/authorize",
  token: "/v1/oauth/token",
  revoke: "/v1/oauth/revoke",
  deviceCode: "/v1/oauth/device/code",
} as const;

export const DEVICE_CODE_GRANT = "urn:ietf:params:oauth:grant-type:device_code";

/** Access is always the same as the user's; clients may also request a refresh token. */
export const SCOPES = ["platform", "offline_access"] as const;

/** The only resource (RFC 8707); clients need not name it. */
export const PLATFORM_RESOURCE = "urn:fairlead:platform";
export const ACCESS_TOKEN_SECONDS = 600;

/** Stored form of codes and refresh tokens: they are random, so a plain hash is safe. */
export function hashToken(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

/** Error codes of RFC 6749 §5.2, RFC 8628 §3.5, RFC 7009 §2.2. */
export const OAUTH_ERRORS = [
  "invalid_request",
  "invalid_client",
  "invalid_grant",
  "unauthorized_client",
  "unsupported_grant_type",
  "unsupported_response_type",
  "invalid_scope",
  "access_denied",
  "authorization_pending",
  "slow_down",
  "expired_token",
] as const;
export type OAuthErrorCode = (typeof OAUTH_ERRORS)[number];

/** An error defined by the OAuth standards; other failures of these endpoints are `DomainError`s. */
export class OAuthRefusal extends Error {
  override readonly name = "OAuthRefusal";
  readonly code: OAuthErrorCode;

  /** @param message public, for the developer of the client. */
  constructor(code: OAuthErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** A program that users can authorize. All are public clients with PKCE or a device code. */
export interface OAuthClient {
  readonly id: string;
  /** The name on the consent page. */
  readonly name: string;
  readonly redirectUris: readonly string[];
}

/** The CLI listens on a random port: any port matches (RFC 8252 §7.3). */
export const CLI_CLIENT: OAuthClient = {
  id: "fairlead-cli",
  name: "Fairlead CLI",
  redirectUris: ["http://127.0.0.1/callback", "http://[::1]/callback"],
};

/** @throws OAuthRefusal */
export function registeredClient(clients: readonly OAuthClient[], clientId: string): OAuthClient {
  const client = clients.find(({ id }) => id === clientId);
  if (client) return client;
  throw new OAuthRefusal(
    "invalid_client",
    "There is no such client. Clients are listed in the server's configuration.",
  );
}

/** @param asked space-separated. @returns it with the scopes of every token */
export function wholeScope(asked: string | undefined): string {
  const scopes = (asked ?? "").split(" ").filter((scope) => scope !== "");
  return [...new Set(["platform", ...scopes])].join(" ");
}

/** Display form: `BCDF-GHJK`. */
export function shownUserCode(code: string): string {
  return `${code.slice(0, code.length / 2)}-${code.slice(code.length / 2)}`;
}

/** What the user is asked to authorize, on the consent or device page. */
export interface AccessRequest {
  readonly client: { readonly id: string; readonly name: string };
  readonly scopes: readonly string[];
}

/** What a user with a code is asked to authorize: it may have been requested by someone else. */
export interface DeviceAccessRequest extends AccessRequest {
  readonly from: { readonly address: string; readonly userAgent: string; readonly secondsAgo: number };
}

/** @param issuer the platform host's public URL. @returns RFC 8414 metadata, also used for OIDC discovery. */
export function oauthMetadata(issuer: string): Record<string, unknown> {
  return {
    issuer,
    authorization_endpoint: issuer + OAUTH_PATHS.authorize,
    token_endpoint: issuer + OAUTH_PATHS.token,
    revocation_endpoint: issuer + OAUTH_PATHS.revoke,
    device_authorization_endpoint: issuer + OAUTH_PATHS.deviceCode,
    jwks_uri: `${issuer}/.well-known/jwks.json`,
    scopes_supported: SCOPES,
    response_types_supported: ["code"],
    response_modes_supported: ["query"],
    grant_types_supported: ["authorization_code", "refresh_token", DEVICE_CODE_GRANT],
    token_endpoint_auth_methods_supported: ["none"],
    revocation_endpoint_auth_methods_supported: ["none"],
    code_challenge_methods_supported: ["S256"],
    authorization_response_iss_parameter_supported: true,
    subject_types_supported: ["public"],
    id_token_signing_alg_values_supported: ["EdDSA"],
  };
}
