import {
  authorizationCodeGrant,
  buildAuthorizationUrl,
  calculatePKCECodeChallenge,
  randomPKCECodeVerifier,
  randomState,
} from "openid-client";
import { CliError } from "../cli-error.ts";
import { discover, explained, type OAuthServer, readTokens, SCOPE, type Tokens } from "./oauth-client.ts";
import { listenForRedirect, type Redirect, type RedirectListener } from "./redirect-listener.ts";

const PATIENCE_MS = 600_000;

/** Authorization code with PKCE and a redirect to this machine (RFC 8252, RFC 7636). */

export interface WebLogin {
  /** The sign-in page. */
  readonly url: string;
  /** Waits for the redirect. @throws CliError if the sign-in was denied; the signal's reason */
  approved(signal: AbortSignal): Promise<Tokens>;
  close(): void;
}

/** @throws CliError */
export async function beginWebLogin(server: OAuthServer): Promise<WebLogin> {
  const config = await discover(server);
  const verifier = randomPKCECodeVerifier();
  const state = randomState();
  const listener = await listenForRedirect(state);
  const challenge = await calculatePKCECodeChallenge(verifier);
  const url = await explained(server.baseUrl, async () =>
    buildAuthorizationUrl(config, {
      redirect_uri: listener.redirectUri,
      scope: SCOPE,
      code_challenge: challenge,
      code_challenge_method: "S256",
      state,
    }),
  );
  return {
    url: url.href,
    approved: async (signal) => {
      const redirect = await backInTime(listener, signal);
      try {
        const checks = { pkceCodeVerifier: verifier, expectedState: state };
        const answer = await explained(server.baseUrl, () => authorizationCodeGrant(config, redirect.url, checks));
        redirect.answer("You are signed in. You can close this page.");
        return readTokens(answer);
      } catch (error) {
        redirect.answer("Sign-in failed. The terminal shows the reason. You can close this page.");
        throw error;
      }
    },
    close: () => listener.close(),
  };
}

async function backInTime(listener: RedirectListener, signal: AbortSignal): Promise<Redirect> {
  const late = AbortSignal.timeout(PATIENCE_MS);
  try {
    return await listener.redirected(AbortSignal.any([signal, late]));
  } catch (error) {
    if (!late.aborted || signal.aborted) throw error;
    throw new CliError("The sign-in was not completed within ten minutes. Run `fairlead login` again.");
  }
}
