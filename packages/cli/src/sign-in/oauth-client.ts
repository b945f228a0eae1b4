import * as oauth from "openid-client";
import { CliError } from "../cli-error.ts";
import { proxyFailure } from "../platform/outgoing.ts";
import { isLoopback, requireSafeAddress } from "./platform-address.ts";

/** The public OAuth client `fairlead-cli`. Loaded lazily. */

const CLIENT_ID = "fairlead-cli";
const ANSWER_SECONDS = 20;
/** `offline_access` adds a refresh token. */
export const SCOPE = "platform offline_access";

export interface OAuthServer {
  readonly baseUrl: string;
  /** Allows plain HTTP to another machine. */
  readonly insecure: boolean;
}

/** The result of a grant. */
export interface Tokens {
  readonly accessToken: string;
  readonly expiresInSeconds: number;
  readonly refreshToken: string | null;
}

/** The refresh token was used, revoked or has expired; the user must sign in. */
export class LoginEnded extends CliError {
  override readonly name = "LoginEnded";
}

/** No response or a temporary error; a retry may succeed. */
export class Unavailable extends CliError {
  override readonly name = "Unavailable";
}

/** Discovers the OAuth endpoints (RFC 8414). @throws CliError, UsageError */
export async function discover({ baseUrl, insecure }: OAuthServer): Promise<oauth.Configuration> {
  requireSafeAddress(baseUrl, insecure);
  const url = new URL(baseUrl);
  const plain = url.protocol === "http:" && (insecure || isLoopback(url));
  return explained(baseUrl, () =>
    oauth.discovery(url, CLIENT_ID, undefined, oauth.None(), {
      // With a base path, RFC 8414's URL is outside of it and may belong to something else behind the same reverse proxy.
      algorithm: url.pathname === "/" ? "oauth2" : "oidc",
      timeout: ANSWER_SECONDS,
      execute: plain ? [oauth.allowInsecureRequests] : [],
    }),
  );
}

/** @throws LoginEnded if the refresh token is no longer valid; CliError */
export async function refresh(server: OAuthServer, refreshToken: string): Promise<Tokens> {
  const config = await discover(server);
  return explained(server.baseUrl, async () => readTokens(await oauth.refreshTokenGrant(config, refreshToken)));
}

/** Revokes the login on the server (RFC 7009). @throws CliError */
export async function revoke(server: OAuthServer, token: string): Promise<void> {
  const config = await discover(server);
  await explained(server.baseUrl, () => oauth.tokenRevocation(config, token, { token_type_hint: "refresh_token" }));
}

export function readTokens(answer: oauth.TokenEndpointResponse): Tokens {
  return {
    accessToken: answer.access_token,
    // The lifetime is optional in RFC 6749 §5.1; without it, renew soon.
    expiresInSeconds: answer.expires_in ?? 60,
    refreshToken: answer.refresh_token ?? null,
  };
}

/** Runs an exchange and turns its errors into user-facing ones. */
export async function explained<T>(baseUrl: string, exchange: () => Promise<T>): Promise<T> {
  try {
    return await exchange();
  } catch (error) {
    throw explain(error, baseUrl);
  }
}

function explain(error: unknown, baseUrl: string): unknown {
  if (error instanceof oauth.ResponseBodyError) return refusal(error.error, error.error_description, error);
  if (error instanceof oauth.AuthorizationResponseError) return refusal(error.error, error.error_description, error);
  if (error instanceof oauth.ClientError) return wrongAnswer(error, baseUrl);
  // A network error of fetch.
  if (error instanceof TypeError) {
    const proxy = proxyFailure(error);
    return new Unavailable(
      proxy ??
        `Cannot reach the platform host at ${baseUrl}. Check that the server is running and that --base-url is correct.`,
      { cause: error },
    );
  }
  return error;
}

function refusal(code: string, description: string | undefined, cause: Error): CliError {
  switch (code) {
    case "access_denied":
      return new CliError("The sign-in was denied in the browser.", { cause });
    case "expired_token":
      return new CliError("The code expired before it was approved. Run `fairlead login` again.", { cause });
    case "invalid_grant":
      return new LoginEnded("Your login has expired or was revoked. Run `fairlead login`.", {
        cause,
      });
    default:
      return new CliError(`The platform host rejected the request: ${description ?? code} (${code})`, { cause });
  }
}

function wrongAnswer(error: oauth.ClientError, baseUrl: string): CliError {
  if (error.code === "OAUTH_TIMEOUT") {
    return new Unavailable(`The platform host at ${baseUrl} did not respond in time. Try again.`, { cause: error });
  }
  if (error.cause instanceof Response && (error.cause.status >= 500 || error.cause.status === 429)) {
    return new Unavailable(
      `The platform host at ${baseUrl} is temporarily unavailable (${error.cause.status}). Try again.`,
      {
        cause: error,
      },
    );
  }
  const issuer = statedIssuer(error.cause);
  if (issuer !== null) {
    return new CliError(
      `The platform host at ${baseUrl} has the public URL ${issuer}. Use it: --base-url ${issuer}\n` +
        "(The operator sets it with server.publicUrl.)",
      { cause: error },
    );
  }
  return new CliError(`The server at ${baseUrl} does not support sign-in from the command line. Is it Fairlead?`, {
    cause: error,
  });
}

/** The issuer in the metadata, if it did not match. */
function statedIssuer(cause: unknown): string | null {
  if (typeof cause !== "object" || cause === null || !("body" in cause)) return null;
  const { body } = cause;
  if (typeof body !== "object" || body === null || !("issuer" in body)) return null;
  return typeof body.issuer === "string" ? body.issuer : null;
}
