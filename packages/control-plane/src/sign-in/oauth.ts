import { createHash } from "node:crypto";

/** The OAuth server's names and facts. Pure. */

export const OAUTH_PATHS = {
  authorize: "/v1/oauth/authorize",
  token: "/v1/oauth/token",
  revoke: "/v1/oauth/revoke",
  deviceCode: "/v1/oauth/device/code",
} as const;

export const DEVICE_CODE_GRANT = "urn:ietf:params:oauth:grant-type:device_code";

/** Every token is for all that its user may do; a client may ask for a refresh token on top of it. */
export const SCOPES = ["platform", "offline_access"] as const;

/** The one thing that tokens are for (RFC 8707); clients need not name it. */
export const PLATFORM_RESOURCE = "urn:fairlead:platform";
export const ACCESS_TOKEN_SECONDS = 600;

/** How codes and refresh tokens rest: they are random, so a plain hash tells nothing. */
export function hashToken(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

/** A program that people may let act for them. All are public: they hold no secret, and prove themselves by PKCE or a device code. */
export interface OAuthClient {
  readonly id: string;
  /** What the consent page calls it. */
  readonly name: string;
  readonly redirectUris: readonly string[];
}

/** The redirect goes to a port of its own that the command line listens on: any port matches (RFC 8252 §7.3). */
export const CLI_CLIENT: OAuthClient = {
  id: "fairlead-cli",
  name: "Fairlead command line",
  redirectUris: ["http://127.0.0.1/callback", "http://[::1]/callback"],
};

/** What somebody is asked to let in: by the consent page, or by the device page. */
export interface AccessRequest {
  readonly client: { readonly id: string; readonly name: string };
  readonly scopes: readonly string[];
}

/** @param issuer the platform host's public URL. @returns RFC 8414 metadata; OIDC discovery answers the same. */
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
