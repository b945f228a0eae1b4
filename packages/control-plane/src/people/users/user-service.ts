import { isUniqueViolation } from "@fairlead/hosting/errors/store-errors";
import { CLOCK_SKEW_SECONDS } from "@fairlead/protocol/enrollment";
import { DomainError } from "@fairlead/protocol/errors";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { IdSource } from "@fairlead/protocol/values/ids";
import type { Kysely } from "kysely";
import type { AuditActor } from "../../access/audit/audit.ts";
import type { AuditService } from "../../access/audit/audit-service.ts";
import type { SignInSessions } from "../../access/auth/authenticate.ts";
import type { TokenService } from "../../access/auth/tokens/tokens.ts";
import type { Database } from "../../installation/db/tables/schema.ts";
import { SessionStore } from "./session-store.ts";
import type { SignInSession, UserRecord } from "./user.ts";
import { UserStore } from "./user-store.ts";

export interface UserServiceDeps {
  readonly db: Kysely<Database>;
  readonly audit: AuditService;
  readonly tokens: TokenService;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly randomBytes: (n: number) => Uint8Array;
}

export interface CreateUser {
  /** Lowercase. */
  readonly email: string;
  readonly name: string;
  readonly platformAdmin: boolean;
}

/** Name of operator tokens in the user's list of sessions. */
const OPERATORS_TOKEN = "Token created by the operator";
const DAY_SECONDS = 24 * 3600;
export const MAX_TOKEN_TTL_SECONDS = 30 * DAY_SECONDS;

/** Users, and session tokens created by the operator. */
export class UserService implements SignInSessions {
  readonly #deps: UserServiceDeps;
  readonly #users: UserStore;
  readonly #sessions: SessionStore;

  constructor(deps: UserServiceDeps) {
    this.#deps = deps;
    this.#users = new UserStore(deps.db);
    this.#sessions = new SessionStore(deps.db);
  }

  /** @param input its email address in lowercase. @throws DomainError already_exists */
  async create(transaction: Kysely<Database>, input: CreateUser & { readonly actor: AuditActor }): Promise<UserRecord> {
    const { clock, ids, audit } = this.#deps;
    const { actor, ...rest } = input;
    const users = new UserStore(transaction);
    // Checked before the insert, because a failed insert aborts a PostgreSQL transaction.
    if (await users.findByEmail(rest.email)) throw taken(rest.email);
    const user: UserRecord = { id: ids.next("user"), ...rest, createdAt: clock.now() };
    try {
      await users.insert(user);
    } catch (error) {
      if (isUniqueViolation(error)) throw taken(rest.email);
      throw error;
    }
    const resource = { type: "user", id: user.id, name: user.email } as const;
    await audit.record(transaction, { actor, action: "user.create", projectId: null, resource });
    return user;
  }

  /** The user with this email address, created if missing. An existing one keeps its name, and may become administrator. */
  async ensure(
    input: CreateUser & { readonly actor: AuditActor },
  ): Promise<{ readonly user: UserRecord; readonly created: boolean }> {
    try {
      return await this.#deps.db.transaction().execute(async (transaction) => {
        const known = await new UserStore(transaction).findByEmail(input.email);
        if (known) return { user: await this.#promote(transaction, known, input), created: false };
        return { user: await this.create(transaction, input), created: true };
      });
    } catch (error) {
      // Created concurrently.
      if (error instanceof DomainError && error.code === "already_exists") return this.ensure(input);
      throw error;
    }
  }

  /**
   * Creates a session token with its own session.
   * @returns the token and its expiry (Unix ms). @throws DomainError not_found, invalid_request
   */
  async openSession(input: {
    readonly email: string;
    readonly ttlSeconds: number;
    readonly actor: AuditActor;
  }): Promise<{ readonly token: string; readonly expiresAt: number }> {
    const { db, audit, tokens, clock, ids, randomBytes } = this.#deps;
    refuseLongLife(input.ttlSeconds);
    const user = await this.#users.findByEmail(input.email);
    if (!user) throw new DomainError("not_found", `There is no user with the email address ${input.email}.`);
    const now = clock.now();
    await this.#sessions.deleteExpired(user.id, now - CLOCK_SKEW_SECONDS * 1000);
    const session: SignInSession = {
      id: ids.next("signInSession"),
      userId: user.id,
      createdAt: now,
      expiresAt: now + input.ttlSeconds * 1000,
      userAgent: OPERATORS_TOKEN,
      address: null,
    };
    const { id: sessionId, userId, expiresAt } = session;
    await db.transaction().execute(async (transaction) => {
      await new SessionStore(transaction).insert(session, Buffer.from(randomBytes(32)).toString("base64url"));
      const resource = { type: "user", id: userId, name: user.email } as const;
      const detail = { sessionId, ttlSeconds: input.ttlSeconds };
      await audit.record(transaction, { actor: input.actor, action: "admin.token", projectId: null, resource, detail });
    });
    return { token: await tokens.issueSession({ userId, sessionId, ttlSeconds: input.ttlSeconds }), expiresAt };
  }

  /** @param email in lowercase. */
  async findByEmail(email: string): Promise<UserRecord | null> {
    return this.#users.findByEmail(email);
  }

  /** @throws DomainError not_found */
  async get(userId: string): Promise<UserRecord> {
    return known(await this.#users.find(userId));
  }

  /** @throws DomainError not_found */
  async rename(input: {
    readonly userId: string;
    readonly name: string;
    readonly actor: AuditActor;
  }): Promise<UserRecord> {
    const { db, audit, clock } = this.#deps;
    const { userId, name, actor } = input;
    return db.transaction().execute(async (transaction) => {
      const user = known(await new UserStore(transaction).rename(userId, { name, now: clock.now() }));
      const resource = { type: "user", id: userId, name: user.email } as const;
      await audit.record(transaction, { actor, action: "user.rename", projectId: null, resource, detail: { name } });
      return user;
    });
  }

  /** False until the first user exists. */
  async hasAny(): Promise<boolean> {
    return this.#users.hasAny();
  }

  async find(sessionId: string): Promise<{ readonly userId: string; readonly platformAdmin: boolean } | null> {
    const owner = await this.#sessions.findOwner(sessionId);
    const ended = owner !== null && owner.expiresAt + CLOCK_SKEW_SECONDS * 1000 <= this.#deps.clock.now();
    return ended ? null : owner;
  }

  async #promote(
    transaction: Kysely<Database>,
    user: UserRecord,
    { platformAdmin, actor }: { readonly platformAdmin: boolean; readonly actor: AuditActor },
  ): Promise<UserRecord> {
    if (!platformAdmin || user.platformAdmin) return user;
    await new UserStore(transaction).makePlatformAdmin(user.id, this.#deps.clock.now());
    const resource = { type: "user", id: user.id, name: user.email } as const;
    await this.#deps.audit.record(transaction, { actor, action: "admin.platform_admin", projectId: null, resource });
    return { ...user, platformAdmin: true };
  }
}

function known(user: UserRecord | null): UserRecord {
  if (user) return user;
  throw new DomainError("not_found", "There is no such user.");
}

function taken(email: string): DomainError {
  return new DomainError("already_exists", `There is already a user with the email address ${email}.`);
}

function refuseLongLife(ttlSeconds: number): void {
  if (Number.isInteger(ttlSeconds) && ttlSeconds >= 1 && ttlSeconds <= MAX_TOKEN_TTL_SECONDS) return;
  const days = MAX_TOKEN_TTL_SECONDS / DAY_SECONDS;
  throw new DomainError("invalid_request", `A token can be valid for 1 second to ${days} days.`, {
    param: "ttlSeconds",
  });
}
