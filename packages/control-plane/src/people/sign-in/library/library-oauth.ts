import { oauthDeviceAuthorization, oauthProvider } from "@better-auth/oauth-provider";
import type { BetterAuthPlugin } from "better-auth";
import { isAPIError } from "better-auth/api";
import { jwt } from "better-auth/plugins";
import { z } from "zod";
import { ACCESS_TOKEN_SECONDS, hashToken, PLATFORM_RESOURCE, SCOPES } from "../oauth/oauth.ts";
import { CONSENT_PAGE, DEVICE_PAGE, SIGN_IN_PAGE } from "../sign-in.ts";
import type { LibraryOptions } from "./library.ts";

/** Configures the library's OAuth server. It validates grants; our key ring signs the tokens. */

/** The endpoints we call. Each returns an HTTP response. */
export interface OAuthEndpoints {
  readonly oauth2Authorize: Endpoint;
  readonly oauth2Consent: Endpoint;
  readonly oauth2Token: Endpoint;
  readonly deviceCode: Endpoint;
  readonly deviceVerify: Endpoint;
  readonly deviceApprove: Endpoint;
  readonly deviceDeny: Endpoint;
}

type Endpoint = (input: EndpointInput) => Promise<Response>;

export interface EndpointInput {
  readonly asResponse: true;
  readonly headers: Headers;
  readonly request?: Request;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: Readonly<Record<string, string | boolean>>;
}

const DEVICE_CODE_LIFE = "10m";
const DEVICE_CODE_INTERVAL = "5s";
const CODE_SECONDS = 60;
/** No letters or digits that look alike (RFC 8628 §6.1). There are 20^8 codes, valid for ten minutes. */
const USER_CODE_LETTERS = "BCDFGHJKLMNPQRSTVWXZ";
const USER_CODE_LENGTH = 8;

/** Converts what the library's hooks throw into a response. */
export function answering(api: OAuthEndpoints): OAuthEndpoints {
  const whole =
    (endpoint: Endpoint): Endpoint =>
    async (input) => {
      try {
        return await endpoint(input);
      } catch (error) {
        if (isAPIError(error)) return Response.json(error.body ?? {}, { status: error.statusCode });
        throw error;
      }
    };
  return {
    oauth2Authorize: whole(api.oauth2Authorize),
    oauth2Consent: whole(api.oauth2Consent),
    oauth2Token: whole(api.oauth2Token),
    deviceCode: whole(api.deviceCode),
    deviceVerify: whole(api.deviceVerify),
    deviceApprove: whole(api.deviceApprove),
    deviceDeny: whole(api.deviceDeny),
  };
}

/** @returns plugins; their types were written without `exactOptionalPropertyTypes` and would not match. */
export function oauthPlugins(options: LibraryOptions): BetterAuthPlugin[] {
  return [
    jwt({
      disableSettingJwtHeader: true,
      // Our key ring signs, so the library has no keys and publishes none.
      jwks: { remoteUrl: `${options.publicUrl}/.well-known/jwks.json`, keyPairConfig: { alg: "EdDSA" } },
      jwt: { issuer: options.publicUrl, sign: (payload) => signAccessToken(payload, options) },
    }),
    oauthProvider({
      loginPage: SIGN_IN_PAGE,
      consentPage: CONSENT_PAGE,
      scopes: [...SCOPES],
      grantTypes: ["authorization_code", "refresh_token"],
      codeExpiresIn: CODE_SECONDS,
      accessTokenExpiresIn: ACCESS_TOKEN_SECONDS,
      refreshTokenExpiresIn: options.sessionSeconds,
      storeTokens: { hash: async (token) => hashToken(token) },
      resources: [{ identifier: PLATFORM_RESOURCE, name: "Fairlead" }],
      enforcePerClientResources: false,
      silenceWarnings: { oauthAuthServerConfig: true, openidConfig: true },
    }),
    oauthDeviceAuthorization({
      expiresIn: DEVICE_CODE_LIFE,
      interval: DEVICE_CODE_INTERVAL,
      verificationUri: options.publicUrl + DEVICE_PAGE,
      generateDeviceCode: () => deviceCode(options),
      generateUserCode: () => userCode(options.randomBytes),
    }),
  ] as unknown as BetterAuthPlugin[];
}

const accessTokenPayload = z.object({ sub: z.string(), client_id: z.string() });

/** Returns our session token, for the current session, as the library's access token. */
async function signAccessToken(payload: unknown, { calls, tokens }: LibraryOptions): Promise<string> {
  const { sub: userId, client_id: clientId } = accessTokenPayload.parse(payload);
  const call = calls.current();
  call.grantedTo = { userId, clientId };
  return tokens.issueSession({ userId, sessionId: call.sessionId, ttlSeconds: ACCESS_TOKEN_SECONDS });
}

/** The library stores only the hash; the client gets the code itself. */
function deviceCode({ calls, randomBytes }: LibraryOptions): string {
  const secret = Buffer.from(randomBytes(32)).toString("base64url");
  calls.current().deviceCode = secret;
  return hashToken(secret);
}

function userCode(randomBytes: (n: number) => Uint8Array): string {
  const letters: string[] = [];
  while (letters.length < USER_CODE_LENGTH) {
    // Bytes of 240 and above would make some letters more likely.
    const usable = randomBytes(USER_CODE_LENGTH).filter((byte) => byte < 12 * USER_CODE_LETTERS.length);
    letters.push(...Array.from(usable, (byte) => USER_CODE_LETTERS.charAt(byte % USER_CODE_LETTERS.length)));
  }
  return letters.slice(0, USER_CODE_LENGTH).join("");
}
