import { cookieScope } from "@fairlead/hosting/public-url";
import type { IdSource } from "@fairlead/protocol/values/ids";
import { type BetterAuthOptions, betterAuth } from "better-auth";
import { createAuthEndpoint } from "better-auth/api";
import { expireCookie, setSessionCookie } from "better-auth/cookies";
import { z } from "zod";
import type { TokenService } from "../../../access/auth/tokens/tokens.ts";
import type { Log } from "../../../installation/process/log.ts";
import type { LibraryCalls } from "./library-calls.ts";
import { answering, type OAuthEndpoints, oauthPlugins } from "./library-oauth.ts";

/** Configures better-auth: cookie sessions and the OAuth server. Only `sign-in/` imports it. */

export interface LibraryOptions {
  readonly calls: LibraryCalls;
  readonly publicUrl: string;
  /** Signs cookies and values that pass through the browser. At least 32 bytes of entropy. */
  readonly secret: string;
  readonly sessionSeconds: number;
  readonly tokens: TokenService;
  readonly ids: IdSource;
  readonly randomBytes: (n: number) => Uint8Array;
  readonly log: Log;
}

export interface Library {
  /** Resolves once the library has initialized its tables. */
  readonly ready: Promise<unknown>;
  /** Creates a session. @returns its ID and its `Set-Cookie` values. */
  openSession(input: OpenSession): Promise<{ readonly sessionId: string; readonly setCookies: readonly string[] }>;
  /** @returns null without a valid cookie of an active session. */
  sessionOf(headers: Headers): Promise<{ readonly sessionId: string; readonly userId: string } | null>;
  /** `Set-Cookie` values that clear the session. */
  forgettingCookies(): Promise<readonly string[]>;
  readonly oauth: OAuthEndpoints;
}

export type OpenSession = z.infer<typeof openSessionBody>;

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

/** All options that determine the library's tables. */
export function libraryOptions(options: LibraryOptions): BetterAuthOptions {
  return { ...coreOptions(options), plugins: oauthPlugins(options) };
}

function coreOptions({ calls, publicUrl, secret, sessionSeconds, ids, log }: LibraryOptions): BetterAuthOptions {
  const { prefix, path, secure } = cookieScope(publicUrl);
  return {
    baseURL: publicUrl,
    secret,
    // Explicit, because the library would otherwise read an environment variable.
    secrets: [{ version: 1, value: secret }],
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
      // The library is reachable only through our routes and pages, which check a form's origin.
      disableCSRFCheck: true,
      disableOriginCheck: true,
      useSecureCookies: false,
      defaultCookieAttributes: { httpOnly: true, sameSite: "lax", secure, path },
      cookies: { session_token: { name: `${prefix}fairlead_session` } },
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

/** Creates and clears sessions of authenticated users. Has no paths, so that it cannot be called over HTTP. */
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
        expireCookie(ctx, ctx.context.authCookies.sessionToken);
      }),
    },
  };
}
