import { oauthDeviceAuthorization, oauthProvider } from "@better-auth/oauth-provider";
import type { IdSource } from "@fairlead/protocol/ids";
import { type BetterAuthOptions, type BetterAuthPlugin, betterAuth } from "better-auth";
import { createAuthEndpoint, isAPIError } from "better-auth/api";
import { deleteSessionCookie, setSessionCookie } from "better-auth/cookies";
import { jwt } from "better-auth/plugins";
import { z } from "zod";
import type { TokenService } from "../auth/tokens.ts";
import type { Log } from "../log.ts";
import type { LibraryCalls } from "./library-calls.ts";
import { ACCESS_TOKEN_SECONDS, hashToken, PLATFORM_RESOURCE, SCOPES } from "./oauth.ts";
import { CONSENT_PAGE, DEVICE_PAGE, SIGN_IN_PAGE } from "./sign-in.ts";

/** better-auth, set up: sessions with cookies, and the OAuth server. `sign-in/` alone knows it. */

export interface LibraryOptions {
  readonly calls: LibraryCalls;
  readonly publicUrl: string;
  /** Signs cookies and what goes through a browser; a text of at least 32 bytes of entropy. */
  readonly secret: string;
  readonly sessionSeconds: number;
  readonly tokens: TokenService;
  readonly ids: IdSource;
  readonly randomBytes: (n: number) => Uint8Array;
  readonly log: Log;
}

export interface Library {
  /** Resolves once the library has prepared its part of the store. */
  readonly ready: Promise<unknown>;
  /** A new session. @returns it, and its cookie as values of `Set-Cookie`. */
  openSession(input: OpenSession): Promise<{ readonly sessionId: string; readonly setCookies: readonly string[] }>;
  /** @returns null without a good cookie of a session that goes on. */
  sessionOf(headers: Headers): Promise<{ readonly sessionId: string; readonly userId: string } | null>;
  /** The `Set-Cookie` values that make a browser forget its session. */
  forgettingCookies(): Promise<readonly string[]>;
  readonly oauth: OAuthEndpoints;
}

export type OpenSession = z.infer<typeof openSessionBody>;

/** The library's endpoints that we call, each of which answers as over HTTP. */
export interface OAuthEndpoints {
  oauth2Authorize(input: EndpointInput): Promise<Response>;
  oauth2Consent(input: EndpointInput): Promise<Response>;
  oauth2Token(input: EndpointInput): Promise<Response>;
  deviceCode(input: EndpointInput): Promise<Response>;
  deviceVerify(input: EndpointInput): Promise<Response>;
  deviceApprove(input: EndpointInput): Promise<Response>;
  deviceDeny(input: EndpointInput): Promise<Response>;
}

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
/** Without letters and digits that look alike (RFC 8628 §6.1); 20^8 codes, and they live for ten minutes. */
const USER_CODE_LETTERS = "BCDFGHJKLMNPQRSTVWXZ";
const USER_CODE_LENGTH = 8;

export function createLibrary(options: LibraryOptions): Library {
  const auth = betterAuth({ ...coreOptions(options), plugins: [sessionKeeping(), ...oauthPlugins(options)] });
  return {
    ready: auth.$context,
    openSession: async (body) => {
      const { headers, response } = await auth.api.openSession({ body, returnHeaders: true });
      return { sessionId: response.id, setCookies: headers.getSetCookie() };
    },
    sessionOf: async (headers) => {
      const found = await auth.api.getSession({ headers, query: { disableRefresh: true } });
      return found && { sessionId: found.session.id, userId: found.user.id };
    },
    forgettingCookies: async () => (await auth.api.forgetSession({ returnHeaders: true })).headers.getSetCookie(),
    oauth: answering(auth.api as unknown as OAuthEndpoints),
  };
}

/** What the library's hooks throw is an answer too. */
function answering(api: OAuthEndpoints): OAuthEndpoints {
  const whole =
    (endpoint: (input: EndpointInput) => Promise<Response>) =>
    async (input: EndpointInput): Promise<Response> => {
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

/** @returns plugins whose types were written without `exactOptionalPropertyTypes`, and do not fit with it. */
export function oauthPlugins(options: LibraryOptions): BetterAuthPlugin[] {
  return [
    jwt({
      disableSettingJwtHeader: true,
      // Our key ring signs, so the library has no keys of its own, and publishes none.
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

function coreOptions({ calls, publicUrl, secret, sessionSeconds, ids, log }: LibraryOptions): BetterAuthOptions {
  const secure = publicUrl.startsWith("https:");
  return {
    baseURL: publicUrl,
    secret,
    database: calls.adapter,
    telemetry: { enabled: false },
    rateLimit: { enabled: false },
    user: { additionalFields: { platformAdmin: { type: "boolean", required: false, input: false } } },
    session: { expiresIn: sessionSeconds, disableSessionRefresh: true },
    logger: {
      level: "warn",
      log: (level, message) => log[level === "error" ? "error" : "warn"]({ library: "sign-in" }, message),
    },
    advanced: {
      // Nobody reaches the library but our own routes and pages, which check where a form comes from.
      disableCSRFCheck: true,
      disableOriginCheck: true,
      useSecureCookies: false,
      defaultCookieAttributes: { httpOnly: true, sameSite: "lax", secure, path: "/" },
      cookies: { session_token: { name: secure ? "__Host-fairlead_session" : "fairlead_session" } },
      database: {
        generateId: ({ model }) => {
          if (model === "user") return ids.next("user");
          return model === "session" ? ids.next("signInSession") : ids.next("signInRecord");
        },
      },
    },
  };
}

const openSessionBody = z.object({
  userId: z.string(),
  ipAddress: z.string(),
  userAgent: z.string(),
});

/**
 * A session with its cookie, for somebody who has proved who they are in whatever way, and the end of the cookie. Without paths, so
 * that nobody can call them over HTTP.
 */
function sessionKeeping() {
  return {
    id: "session-keeping",
    endpoints: {
      openSession: createAuthEndpoint({ method: "POST", body: openSessionBody }, async (ctx) => {
        const { userId, ...from } = ctx.body;
        const user = await ctx.context.internalAdapter.findUserById(userId);
        if (!user) throw new Error(`there is no user ${userId}`);
        const session = await ctx.context.internalAdapter.createSession(userId, false, from);
        await setSessionCookie(ctx, { session, user }, false);
        return session;
      }),
      forgetSession: createAuthEndpoint({ method: "POST" }, async (ctx) => {
        deleteSessionCookie(ctx, true);
      }),
    },
  };
}

const accessTokenPayload = z.object({ sub: z.string(), client_id: z.string() });

/** The library's access token is our session token, for the session that the call is about. */
async function signAccessToken(payload: unknown, { calls, tokens }: LibraryOptions): Promise<string> {
  const { sub: userId, client_id: clientId } = accessTokenPayload.parse(payload);
  const call = calls.current();
  call.grantedTo = { userId, clientId };
  return tokens.issueSession({ userId, sessionId: call.sessionId, ttlSeconds: ACCESS_TOKEN_SECONDS });
}

/** The library keeps only its hash; the client is given what it was made of. */
function deviceCode({ calls, randomBytes }: LibraryOptions): string {
  const secret = Buffer.from(randomBytes(32)).toString("base64url");
  calls.current().deviceCode = secret;
  return hashToken(secret);
}

function userCode(randomBytes: (n: number) => Uint8Array): string {
  const letters: string[] = [];
  while (letters.length < USER_CODE_LENGTH) {
    // Bytes from 240 on would make some letters likelier than others.
    const usable = randomBytes(USER_CODE_LENGTH).filter((byte) => byte < 12 * USER_CODE_LETTERS.length);
    letters.push(...Array.from(usable, (byte) => USER_CODE_LETTERS.charAt(byte % USER_CODE_LETTERS.length)));
  }
  return letters.slice(0, USER_CODE_LENGTH).join("");
}
