import * as oauth from "openid-client";
import { CliError } from "../cli-error.ts";
import { isLoopback, requireSafeAddress } from "./platform-address.ts";

/** The OAuth client `fairlead-cli`, public: it has no secret. Loaded by the commands that need it alone. */

const CLIENT_ID = "fairlead-cli";
const ANSWER_SECONDS = 20;
/** All that the person may do; and without the second one the login would end with its first access token. */
export const SCOPE = "platform offline_access";

export interface OAuthServer {
  readonly baseUrl: string;
  /** Plain http to another machine was asked for. */
  readonly insecure: boolean;
}

/** What a grant gives. */
export interface Tokens {
  readonly accessToken: string;
  readonly expiresInSeconds: number;
  readonly refreshToken: string | null;
}

/** The refresh token is spent, revoked, or too old: only signing in helps. */
export class LoginEnded extends CliError {
  override readonly name = "LoginEnded";
}

/** Nobody answers there just now, or cannot: the same call may succeed later. */
export class Unavailable extends CliError {
  override readonly name = "Unavailable";
}

/** Asks the platform host where its OAuth endpoints are (RFC 8414). @throws CliError, UsageError */
export async function discover({ baseUrl, insecure }: OAuthServer): Promise<oauth.Configuration> {
  requireSafeAddress(baseUrl, insecure);
  const url = new URL(baseUrl);
  const plain = url.protocol === "http:" && (insecure || isLoopback(url));
  return explained(baseUrl, () =>
    oauth.discovery(url, CLIENT_ID, undefined, oauth.None(), {
      algorithm: "oauth2",
      timeout: ANSWER_SECONDS,
      execute: plain ? [oauth.allowInsecureRequests] : [],
    }),
  );
}

/** @throws LoginEnded when the refresh token is good no more; CliError */
export async function refresh(server: OAuthServer, refreshToken: string): Promise<Tokens> {
  const config = await discover(server);
  return explained(server.baseUrl, async () => readTokens(await oauth.refreshTokenGrant(config, refreshToken)));
}

/** Ends the login at the server (RFC 7009). @throws CliError */
export async function revoke(server: OAuthServer, token: string): Promise<void> {
  const config = await discover(server);
  await explained(server.baseUrl, () => oauth.tokenRevocation(config, token, { token_type_hint: "refresh_token" }));
}

export function readTokens(answer: oauth.TokenEndpointResponse): Tokens {
  return {
    accessToken: answer.access_token,
    // RFC 6749 §5.1 lets a server keep the lifetime to itself; then it is asked again soon.
    expiresInSeconds: answer.expires_in ?? 60,
    refreshToken: answer.refresh_token ?? null,
  };
}

/** Runs an exchange; what goes wrong in it becomes a sentence for the person at the terminal. */
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
  // fetch's own failure; the client lets it through unchanged.
  if (error instanceof TypeError) {
    return new Unavailable(
      `No platform host answers at ${baseUrl}. Is the server running, and is the address right (--base-url)?`,
      { cause: error },
    );
  }
  return error;
}

function refusal(code: string, description: string | undefined, cause: Error): CliError {
  switch (code) {
    case "access_denied":
      return new CliError("The sign-in was refused in the browser.", { cause });
    case "expired_token":
      return new CliError("The code ran out before anybody approved it. Run `fairlead login` again.", { cause });
    case "invalid_grant":
      return new LoginEnded("The login is good no more: it was ended, or has run out. Run `fairlead login`.", {
        cause,
      });
    default:
      return new CliError(`The platform host refused: ${description ?? code} (${code})`, { cause });
  }
}

function wrongAnswer(error: oauth.ClientError, baseUrl: string): CliError {
  if (error.code === "OAUTH_TIMEOUT") {
    return new Unavailable(`The platform host at ${baseUrl} stayed silent. Try again.`, { cause: error });
  }
  if (error.cause instanceof Response && (error.cause.status >= 500 || error.cause.status === 429)) {
    return new Unavailable(
      `The platform host at ${baseUrl} cannot answer just now (${error.cause.status}). Try again.`,
      {
        cause: error,
      },
    );
  }
  const issuer = statedIssuer(error.cause);
  if (issuer !== null) {
    return new CliError(
      `The platform host at ${baseUrl} calls itself ${issuer}. Use that address: --base-url ${issuer}\n` +
        "(An administrator sets it: server.publicUrl.)",
      { cause: error },
    );
  }
  return new CliError(`What answers at ${baseUrl} offers no sign-in for the command line. Is it Fairlead?`, {
    cause: error,
  });
}

/** Whom a metadata document speaks for, where that was the mistake. */
function statedIssuer(cause: unknown): string | null {
  if (typeof cause !== "object" || cause === null || !("body" in cause)) return null;
  const { body } = cause;
  if (typeof body !== "object" || body === null || !("issuer" in body)) return null;
  return typeof body.issuer === "string" ? body.issuer : null;
}
