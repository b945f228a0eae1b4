import type { Clock } from "@fairlead/protocol/clock";
import { CLOCK_SKEW_SECONDS } from "@fairlead/protocol/enrollment";
import { DomainError } from "@fairlead/protocol/errors";
import type { IdSource } from "@fairlead/protocol/ids";
import type { SignInSessions } from "../auth/authenticate.ts";
import type { TokenService } from "../auth/tokens.ts";
import { isUniqueViolation } from "../db/errors.ts";
import type { SessionStore } from "./session-store.ts";
import type { UserRecord } from "./user.ts";
import type { UserStore } from "./user-store.ts";

export interface UserServiceDeps {
  readonly users: UserStore;
  readonly sessions: SessionStore;
  readonly tokens: TokenService;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly randomBytes: (n: number) => Uint8Array;
}

export interface CreateUser {
  /** Lower case. */
  readonly email: string;
  readonly name: string;
  readonly platformAdmin: boolean;
}

const DAY_SECONDS = 24 * 3600;
export const MAX_TOKEN_TTL_SECONDS = 30 * DAY_SECONDS;

/** Users and their sign-in sessions. */
export class UserService implements SignInSessions {
  readonly #deps: UserServiceDeps;

  constructor(deps: UserServiceDeps) {
    this.#deps = deps;
  }

  /** The user with this e-mail address; made if there is none. An existing one keeps its name, and may become administrator. */
  async ensure(input: CreateUser): Promise<{ readonly user: UserRecord; readonly created: boolean }> {
    const known = await this.#deps.users.findByEmail(input.email);
    if (known) return { user: await this.#promote(known, input.platformAdmin), created: false };
    const user: UserRecord = { id: this.#deps.ids.next("user"), ...input, createdAt: this.#deps.clock.now() };
    try {
      await this.#deps.users.insert(user);
    } catch (error) {
      // Somebody made the same user in between.
      if (isUniqueViolation(error)) return this.ensure(input);
      throw error;
    }
    return { user, created: true };
  }

  /**
   * A session token for a user, with a session of its own.
   * @returns the token and its end (Unix ms). @throws DomainError not_found, invalid_request
   */
  async openSession(input: {
    readonly email: string;
    readonly ttlSeconds: number;
  }): Promise<{ readonly token: string; readonly expiresAt: number }> {
    const { users, sessions, tokens, clock, ids, randomBytes } = this.#deps;
    refuseLongLife(input.ttlSeconds);
    const user = await users.findByEmail(input.email);
    if (!user) throw new DomainError("not_found", `There is no user with the e-mail address ${input.email}.`);
    const now = clock.now();
    await sessions.deleteExpired(user.id, now - CLOCK_SKEW_SECONDS * 1000);
    const session = {
      id: ids.next("signInSession"),
      userId: user.id,
      createdAt: now,
      expiresAt: now + input.ttlSeconds * 1000,
    };
    await sessions.insert(session, Buffer.from(randomBytes(32)).toString("base64url"));
    const { id: sessionId, userId, expiresAt } = session;
    return { token: await tokens.issueSession({ userId, sessionId, ttlSeconds: input.ttlSeconds }), expiresAt };
  }

  /** @param email in lower case. */
  async findByEmail(email: string): Promise<UserRecord | null> {
    return this.#deps.users.findByEmail(email);
  }

  /** False until the first person is here. */
  async hasAny(): Promise<boolean> {
    return this.#deps.users.hasAny();
  }

  async find(sessionId: string): Promise<{ readonly userId: string; readonly platformAdmin: boolean } | null> {
    const owner = await this.#deps.sessions.findOwner(sessionId);
    const ended = owner !== null && owner.expiresAt + CLOCK_SKEW_SECONDS * 1000 <= this.#deps.clock.now();
    return ended ? null : owner;
  }

  async #promote(user: UserRecord, platformAdmin: boolean): Promise<UserRecord> {
    if (!platformAdmin || user.platformAdmin) return user;
    await this.#deps.users.makePlatformAdmin(user.id, this.#deps.clock.now());
    return { ...user, platformAdmin: true };
  }
}

function refuseLongLife(ttlSeconds: number): void {
  if (Number.isInteger(ttlSeconds) && ttlSeconds >= 1 && ttlSeconds <= MAX_TOKEN_TTL_SECONDS) return;
  const days = MAX_TOKEN_TTL_SECONDS / DAY_SECONDS;
  throw new DomainError("invalid_request", `A token lives for 1 second to ${days} days.`, { param: "ttlSeconds" });
}
