import { DomainError } from "@fairlead/protocol/errors";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { Kysely } from "kysely";
import type { AuditActor } from "../../access/audit/audit.ts";
import type { AuditService } from "../../access/audit/audit-service.ts";
import type { Database } from "../../installation/db/tables/schema.ts";
import { SessionStore } from "./session-store.ts";
import type { SignInSession } from "./user.ts";

export interface SessionServiceDeps {
  readonly db: Kysely<Database>;
  readonly audit: AuditService;
  readonly clock: Clock;
  readonly randomBytes: (n: number) => Uint8Array;
}

/** Sessions. Every credential of a user belongs to a session and ends with it. */
export class SessionService {
  readonly #deps: SessionServiceDeps;
  readonly #listeners: ((sessionIds: readonly string[]) => void)[] = [];

  constructor(deps: SessionServiceDeps) {
    this.#deps = deps;
  }

  /** Announces ended sessions to caches. */
  listen(listener: (sessionIds: readonly string[]) => void): void {
    this.#listeners.push(listener);
  }

  /** The user's active sessions, newest first. */
  async list(userId: string): Promise<readonly SignInSession[]> {
    return new SessionStore(this.#deps.db).list(userId, this.#deps.clock.now());
  }

  /** @returns null for an ended session. */
  async find(sessionId: string, transaction = this.#deps.db): Promise<SignInSession | null> {
    const session = await new SessionStore(transaction).find(sessionId);
    return session !== null && session.expiresAt > this.#deps.clock.now() ? session : null;
  }

  /** A session without a cookie, for a program. */
  async open(transaction: Kysely<Database>, session: SignInSession): Promise<void> {
    const cookieToken = Buffer.from(this.#deps.randomBytes(32)).toString("base64url");
    await new SessionStore(transaction).insert(session, cookieToken);
  }

  async extend(transaction: Kysely<Database>, sessionId: string, expiresAt: number): Promise<void> {
    await new SessionStore(transaction).extend(sessionId, { now: this.#deps.clock.now(), expiresAt });
  }

  /** Ends one of the user's sessions. @throws DomainError not_found */
  async revoke(input: {
    readonly userId: string;
    readonly sessionId: string;
    readonly actor: AuditActor;
  }): Promise<void> {
    const { userId, sessionId, actor } = input;
    await this.#deps.db.transaction().execute(async (transaction) => {
      if (!(await this.end(transaction, { userId, sessionId }))) {
        throw new DomainError("not_found", "There is no such session of yours. It may have ended already.");
      }
      const resource = { type: "session", id: sessionId } as const;
      await this.#deps.audit.record(transaction, { actor, action: "session.revoke", projectId: null, resource });
    });
    this.announce([sessionId]);
  }

  /** Call `announce` after the transaction. @returns whether it existed. */
  async end(
    transaction: Kysely<Database>,
    session: { readonly userId: string; readonly sessionId: string },
  ): Promise<boolean> {
    return new SessionStore(transaction).delete(session.userId, session.sessionId);
  }

  /** Ends all of a user's sessions except one. Call `announce` with the result after the transaction. */
  async endOthers(transaction: Kysely<Database>, userId: string, keptId: string | null): Promise<readonly string[]> {
    return new SessionStore(transaction).deleteOthers(userId, keptId);
  }

  announce(sessionIds: readonly string[]): void {
    for (const listener of this.#listeners) listener(sessionIds);
  }
}
