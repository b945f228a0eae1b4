import type { Clock } from "@fairlead/protocol/values/clock";
import type { IdSource } from "@fairlead/protocol/values/ids";
import type { Kysely } from "kysely";
import { z } from "zod";
import type { AuditAction } from "../../../access/audit/audit.ts";
import type { AuditService } from "../../../access/audit/audit-service.ts";
import type { CallOrigin } from "../../../access/auth/principal.ts";
import type { TokenService } from "../../../access/auth/tokens/tokens.ts";
import type { Database } from "../../../installation/db/tables/schema.ts";
import type { SessionService } from "../../users/session-service.ts";
import type { Library } from "../library/library.ts";
import type { LibraryCall, LibraryCalls } from "../library/library-calls.ts";
import { signInActor } from "../sign-in-service.ts";
import {
  ACCESS_TOKEN_SECONDS,
  hashToken,
  type OAuthClient,
  OAuthRefusal,
  PLATFORM_RESOURCE,
  registeredClient,
} from "./oauth.ts";
import { readOAuthRefusal } from "./oauth-answer.ts";
import type { TokenRequest } from "./oauth-forms.ts";
import { OAuthStore, type RefreshTokenRecord } from "./oauth-store.ts";

export interface OAuthTokenServiceDeps {
  readonly db: Kysely<Database>;
  readonly library: Library;
  readonly calls: LibraryCalls;
  readonly sessions: SessionService;
  readonly tokens: TokenService;
  readonly audit: AuditService;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly clients: readonly OAuthClient[];
  readonly sessionSeconds: number;
}

type RefreshRequest = TokenRequest & { readonly grant_type: "refresh_token" };

export const tokenAnswer = z.object({
  access_token: z.string(),
  token_type: z.literal("Bearer"),
  expires_in: z.number(),
  refresh_token: z.string().optional(),
  scope: z.string(),
});
export type TokenAnswer = z.infer<typeof tokenAnswer>;

/** Tokens for programs. The library verifies the grant. Each grant creates its own session, which the user can see and end with all its tokens. */
export class OAuthTokenService {
  readonly #deps: OAuthTokenServiceDeps;

  constructor(deps: OAuthTokenServiceDeps) {
    this.#deps = deps;
  }

  /** @throws OAuthRefusal */
  async exchange(request: TokenRequest, origin: CallOrigin): Promise<TokenAnswer> {
    const client = registeredClient(this.#deps.clients, request.client_id);
    return request.grant_type === "refresh_token"
      ? this.#refresh(request, origin)
      : this.#begin(request, { client, origin });
  }

  /** Ends the session of this client's token; an invalid token is not an error (RFC 7009 §2.2). */
  async revoke(request: { readonly client_id: string; readonly token: string }, origin: CallOrigin): Promise<void> {
    const { id: clientId } = registeredClient(this.#deps.clients, request.client_id);
    const ended = await this.#deps.db.transaction().execute(async (transaction) => {
      const store = new OAuthStore(transaction);
      const refresh = await store.findRefreshTokenForUpdate(request.token);
      const family = refresh ?? (await this.#familyOf(request.token, clientId, store));
      if (family?.clientId !== clientId) return null;
      return this.#end(transaction, family, { action: "session.sign_out", origin });
    });
    if (ended !== null) this.#deps.sessions.announce([ended]);
  }

  async #begin(
    request: Exclude<TokenRequest, RefreshRequest>,
    { client, origin }: { readonly client: OAuthClient; readonly origin: CallOrigin },
  ): Promise<TokenAnswer> {
    const { calls, ids, sessions } = this.#deps;
    // Device codes are stored as hashes, which the library treats as the codes.
    const body = "device_code" in request ? { ...request, device_code: hashToken(request.device_code) } : request;
    const code = "code" in request ? request.code : null;
    const { answer, ended } = await calls.run(async (call) => {
      const answer = await this.#ask(body);
      if (answer instanceof OAuthRefusal) {
        return { answer, ended: code === null ? null : await this.#endReplayed(call.transaction, { code, origin }) };
      }
      await this.#openSession(call, { answer, code, client, origin });
      return { answer, ended: null };
    }, ids.next("signInSession"));
    if (ended !== null) sessions.announce([ended]);
    if (answer instanceof OAuthRefusal) throw answer;
    return answer;
  }

  /**
   * The code was used twice, so the session of the first use is ended (RFC 6749 §4.1.2).
   * @returns that session, unless it had ended
   */
  async #endReplayed(
    transaction: Kysely<Database>,
    { code, origin }: { readonly code: string; readonly origin: CallOrigin },
  ): Promise<string | null> {
    const redeemed = await new OAuthStore(transaction).takeRedemption(code);
    return redeemed && this.#end(transaction, redeemed, { action: "oauth.code_replayed", origin });
  }

  async #openSession(
    { transaction, sessionId, grantedTo }: LibraryCall,
    grant: {
      readonly answer: TokenAnswer;
      /** The authorization code; null for other grants. */
      readonly code: string | null;
      readonly client: OAuthClient;
      readonly origin: CallOrigin;
    },
  ): Promise<void> {
    const { sessions, audit, clock, ids, sessionSeconds } = this.#deps;
    const { answer, code, client, origin } = grant;
    if (!grantedTo) throw new Error("a grant returned no access token");
    const { userId } = grantedTo;
    const now = clock.now();
    const seconds = answer.refresh_token === undefined ? ACCESS_TOKEN_SECONDS : sessionSeconds;
    const { address } = origin;
    const expiresAt = now + seconds * 1000;
    await sessions.open(transaction, {
      id: sessionId,
      userId,
      createdAt: now,
      expiresAt,
      userAgent: client.name,
      address,
    });
    const store = new OAuthStore(transaction);
    if (answer.refresh_token !== undefined) await store.bindRefreshToken(answer.refresh_token, sessionId);
    if (code !== null) {
      const session = { userId, clientId: client.id, sessionId };
      await store.keepRedemption(code, session, { id: ids.next("signInRecord"), now, expiresAt });
    }
    await audit.record(transaction, {
      actor: signInActor(origin, userId),
      action: "session.sign_in",
      projectId: null,
      resource: { type: "session", id: sessionId },
      detail: { by: client.id },
    });
  }

  async #refresh(request: RefreshRequest, origin: CallOrigin): Promise<TokenAnswer> {
    const { db, sessions } = this.#deps;
    const known = await new OAuthStore(db).findRefreshToken(request.refresh_token);
    if (known?.clientId !== request.client_id) throw badRefreshToken();
    if (!known.spent) {
      const answer = await this.#rotate(request, known.sessionId);
      if (answer !== null) return answer;
    }
    // The token was used twice, so it may be stolen (RFC 9700 §4.14.2).
    await db
      .transaction()
      .execute((transaction) => this.#end(transaction, known, { action: "oauth.refresh_replayed", origin }));
    if (known.sessionId !== null) sessions.announce([known.sessionId]);
    throw badRefreshToken();
  }

  /** @returns null if the token was used concurrently. */
  async #rotate(request: RefreshRequest, sessionId: string | null): Promise<TokenAnswer | null> {
    const { calls, sessions, clock, sessionSeconds } = this.#deps;
    if (sessionId === null) throw badRefreshToken();
    return unrefused(
      calls.run(async ({ transaction }) => {
        const held = await new OAuthStore(transaction).findRefreshTokenForUpdate(request.refresh_token);
        if (held?.spent === true) return null;
        if (!held || !(await sessions.find(sessionId, transaction))) return badRefreshToken();
        const answer = await this.#ask({ ...request });
        if (answer instanceof OAuthRefusal) return answer;
        await sessions.extend(transaction, sessionId, clock.now() + sessionSeconds * 1000);
        return answer;
      }, sessionId),
    );
  }

  /** An error is returned, not thrown, so that the library's writes (such as polling too fast) are committed. */
  async #ask(body: Readonly<Record<string, string>>): Promise<TokenAnswer | OAuthRefusal> {
    const response = await this.#deps.library.oauth.oauth2Token({
      asResponse: true,
      headers: new Headers(),
      body: { ...body, resource: PLATFORM_RESOURCE },
    });
    if (response.ok) return tokenAnswer.parse(await response.json());
    const refusal = await readOAuthRefusal(response);
    if (!(refusal instanceof OAuthRefusal)) throw refusal;
    // The request was complete, so the grant is invalid: its code, redirect or verifier.
    return refusal.code === "invalid_request" ? new OAuthRefusal("invalid_grant", refusal.message) : refusal;
  }

  /** From an access token. */
  async #familyOf(token: string, clientId: string, store: OAuthStore): Promise<RefreshTokenRecord | null> {
    const claims = await this.#deps.tokens.verify(token).catch(() => null);
    if (claims?.audience !== "platform" || !(await store.isSessionOf(claims.sessionId, clientId))) return null;
    return { userId: claims.userId, sessionId: claims.sessionId, clientId, spent: false };
  }

  /** @returns the session's id, or null if it had ended. */
  async #end(
    transaction: Kysely<Database>,
    { userId, sessionId, clientId }: Omit<RefreshTokenRecord, "spent">,
    event: { readonly action: AuditAction; readonly origin: CallOrigin },
  ): Promise<string | null> {
    const { sessions, audit } = this.#deps;
    if (sessionId === null || !(await sessions.end(transaction, { userId, sessionId }))) return null;
    await audit.record(transaction, {
      actor: signInActor(event.origin, userId),
      action: event.action,
      projectId: null,
      resource: { type: "session", id: sessionId },
      detail: { client: clientId },
    });
    return sessionId;
  }
}

async function unrefused<T>(answer: Promise<T | OAuthRefusal>): Promise<T> {
  const settled = await answer;
  if (settled instanceof OAuthRefusal) throw settled;
  return settled;
}

function badRefreshToken(): OAuthRefusal {
  return new OAuthRefusal("invalid_grant", "This refresh token is unknown, already used or expired. Sign in again.");
}
