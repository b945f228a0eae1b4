import type { IdSource } from "@fairlead/protocol/ids";
import { type BetterAuthOptions, betterAuth } from "better-auth";
import { createAuthEndpoint } from "better-auth/api";
import { expireCookie, setSessionCookie } from "better-auth/cookies";
import { z } from "zod";
import type { TokenService } from "../auth/tokens.ts";
import type { Log } from "../log.ts";
import type { LibraryCalls } from "./library-calls.ts";
import { answering, type OAuthEndpoints, oauthPlugins } from "./library-oauth.ts";

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

/** Everything that decides which tables the library expects. */
export function libraryOptions(options: LibraryOptions): BetterAuthOptions {
  return { ...coreOptions(options), plugins: oauthPlugins(options) };
}

function coreOptions({ calls, publicUrl, secret, sessionSeconds, ids, log }: LibraryOptions): BetterAuthOptions {
  const secure = publicUrl.startsWith("https:");
  return {
    baseURL: publicUrl,
    secret,
    // Stated, since the library would else take it from a variable of the environment.
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
        expireCookie(ctx, ctx.context.authCookies.sessionToken);
      }),
    },
  };
}
