import type { Clock } from "@fairlead/protocol/clock";
import { DomainError } from "@fairlead/protocol/errors";
import type { IdSource } from "@fairlead/protocol/ids";
import type { Kysely } from "kysely";
import type { AuditActor, SystemActor } from "../audit/audit.ts";
import type { AuditService } from "../audit/audit-service.ts";
import type { CallOrigin } from "../auth/principal.ts";
import type { Database } from "../db/schema.ts";
import type { SessionService } from "../users/session-service.ts";
import { emailSchema, type SignInSession, type UserRecord } from "../users/user.ts";
import type { UserService } from "../users/user-service.ts";
import { AccountStore, type PasswordAccount } from "./account-store.ts";
import type { Library } from "./library.ts";
import type { LibraryCalls } from "./library-calls.ts";
import { PASSWORD_MAX, refuseWeakPassword } from "./password.ts";
import type { PasswordHasher } from "./password-hasher.ts";
import type { SignedIn, SignInCaller } from "./sign-in.ts";

export interface SignInServiceDeps {
  readonly db: Kysely<Database>;
  readonly library: Library;
  readonly calls: LibraryCalls;
  readonly users: UserService;
  readonly sessions: SessionService;
  readonly audit: AuditService;
  readonly hasher: PasswordHasher;
  readonly clock: Clock;
  readonly ids: IdSource;
  /** Whether people may sign in by a password at all. */
  readonly passwordEnabled: boolean;
}

/** A password that was judged and hashed; made before the transaction that keeps it, since hashing takes its time. */
export interface PreparedPassword {
  readonly hash: string;
}

export interface CreatePasswordUser {
  readonly email: string;
  readonly name: string;
  readonly platformAdmin: boolean;
  /** Null for somebody who comes by an OIDC provider. */
  readonly password: PreparedPassword | null;
  readonly actor: AuditActor;
}

const MAX_USER_AGENT = 256;

/** Signing in and out, and passwords. In front of the sign-in library, which nobody else in the program knows. */
export class SignInService {
  readonly passwordEnabled: boolean;
  readonly #deps: SignInServiceDeps;

  constructor(deps: SignInServiceDeps) {
    this.#deps = deps;
    this.passwordEnabled = deps.passwordEnabled;
  }

  /** @throws DomainError invalid_credential, in the same words and at the same cost whatever was wrong; permission_denied */
  async signInWithPassword(input: {
    readonly email: string;
    readonly password: string;
    readonly caller: SignInCaller;
  }): Promise<SignedIn> {
    const { email, password, caller } = input;
    if (!this.passwordEnabled) {
      throw new DomainError("permission_denied", "Passwords are not used here; sign in by a provider.");
    }
    const known = await this.#findPassword(email);
    // Nobody makes us hash megabytes; a password in letters of four bytes still fits.
    const fits = password.length <= 4 * PASSWORD_MAX;
    const { right, outdated } = await this.#deps.hasher.check(fits ? password : "", known?.hash ?? null);
    if (!known || !right || !fits) {
      await this.#recordFailure({ email, userId: known?.userId ?? "" }, caller.origin);
      throw new DomainError("invalid_credential", "The e-mail address or the password is wrong.");
    }
    if (outdated) await this.#rehash(known, password);
    return this.openSession(known.userId, caller, "password");
  }

  /** @throws DomainError invalid_request with `param: "password"` */
  async preparePassword(input: { readonly email: string; readonly password: string }): Promise<PreparedPassword> {
    refuseWeakPassword(input.password, input.email);
    return { hash: await this.#deps.hasher.hash(input.password) };
  }

  /** @throws DomainError already_exists */
  async createUser(transaction: Kysely<Database>, input: CreatePasswordUser): Promise<UserRecord> {
    const { users, clock, ids } = this.#deps;
    const { password, ...rest } = input;
    const user = await users.create(transaction, rest);
    if (password) {
      const account = { id: ids.next("signInRecord"), userId: user.id, now: clock.now() };
      await new AccountStore(transaction).setPassword(account, password.hash);
    }
    return user;
  }

  /**
   * A new password by a one-time link. Whoever is signed in with the old one is so no more.
   * @returns ids of the sessions that end with the transaction: pass them to `SessionService.announce` after it.
   */
  async setPassword(
    transaction: Kysely<Database>,
    input: { readonly userId: string; readonly password: PreparedPassword; readonly actor: AuditActor },
  ): Promise<readonly string[]> {
    const { userId, password, actor } = input;
    await this.#keepPassword(transaction, userId, password);
    await this.#deps.audit.record(transaction, { ...aboutUser(userId), actor, action: "user.password_reset" });
    return this.#deps.sessions.endOthers(transaction, userId, null);
  }

  /** Ends all other sessions of the user. @throws DomainError invalid_request with `param: "current"` or `"password"` */
  async changePassword(
    session: SignInSession,
    input: { readonly current: string; readonly next: string; readonly origin: CallOrigin },
  ): Promise<void> {
    const { db, sessions, users, audit, hasher } = this.#deps;
    const { userId } = session;
    const known = await new AccountStore(db).findPassword({ userId });
    const { right } = await hasher.check(input.current, known?.hash ?? null);
    if (!right) throw new DomainError("invalid_request", "This is not your current password.", { param: "current" });
    const { email } = await users.get(userId);
    const password = await this.preparePassword({ email, password: input.next });
    const ended = await db.transaction().execute(async (transaction) => {
      await this.#keepPassword(transaction, userId, password);
      const actor = signInActor(input.origin, userId);
      await audit.record(transaction, { ...aboutUser(userId), actor, action: "user.password_change" });
      return sessions.endOthers(transaction, userId, session.id);
    });
    sessions.announce(ended);
  }

  /** False for somebody who came by an OIDC provider. */
  async hasPassword(userId: string): Promise<boolean> {
    const known = await new AccountStore(this.#deps.db).findPassword({ userId });
    return known !== null && known.hash !== null;
  }

  /**
   * Signs somebody in who has proved who they are.
   * @param by for the audit log: `password`, a provider's id, `invitation`…
   */
  async openSession(userId: string, caller: SignInCaller, by: string): Promise<SignedIn> {
    const { library, calls, sessions, audit } = this.#deps;
    const { origin } = caller;
    const userAgent = (caller.userAgent ?? "").slice(0, MAX_USER_AGENT);
    return calls.run(async ({ transaction }) => {
      const { sessionId, setCookies } = await library.openSession({ userId, ipAddress: origin.address, userAgent });
      const session = await sessions.find(sessionId, transaction);
      if (!session) throw new Error("the session that was just opened is not there");
      await audit.record(transaction, {
        actor: signInActor(origin, userId),
        action: "session.sign_in",
        projectId: null,
        resource: { type: "session", id: sessionId },
        detail: { by },
      });
      return { session, setCookies };
    });
  }

  /** @returns null without a good cookie of a session that goes on. @throws what the store throws when it is away */
  async sessionOfCookie(cookies: string | undefined): Promise<SignInSession | null> {
    if (cookies === undefined) return null;
    const { library, calls, sessions } = this.#deps;
    const headers = new Headers({ cookie: cookies });
    const found = await calls.read(() => library.sessionOf(headers));
    return found === null ? null : sessions.find(found.sessionId);
  }

  /** Ends the session of this browser, if it has one. @returns `Set-Cookie` values that make it forget. */
  async signOut(cookies: string | undefined, origin: CallOrigin): Promise<readonly string[]> {
    const { db, library, sessions, audit } = this.#deps;
    const session = await this.sessionOfCookie(cookies);
    if (session) {
      const { userId, id: sessionId } = session;
      await db.transaction().execute(async (transaction) => {
        if (!(await sessions.end(transaction, { userId, sessionId }))) return;
        const resource = { type: "session", id: sessionId } as const;
        const actor = signInActor(origin, userId);
        await audit.record(transaction, { actor, action: "session.sign_out", projectId: null, resource });
      });
      sessions.announce([sessionId]);
    }
    return library.forgettingCookies();
  }

  async #findPassword(email: string): Promise<PasswordAccount | null> {
    const parsed = emailSchema.safeParse(email);
    return parsed.success ? new AccountStore(this.#deps.db).findPassword({ email: parsed.data }) : null;
  }

  async #keepPassword(transaction: Kysely<Database>, userId: string, { hash }: PreparedPassword): Promise<void> {
    const account = { id: this.#deps.ids.next("signInRecord"), userId, now: this.#deps.clock.now() };
    await new AccountStore(transaction).setPassword(account, hash);
  }

  async #rehash({ userId, hash }: PasswordAccount, password: string): Promise<void> {
    const next = await this.#deps.hasher.hash(password);
    await new AccountStore(this.#deps.db).replaceHash(userId, { old: hash ?? "", next });
  }

  /** What was typed may be a password in the wrong field, so only an address that is somebody's is recorded. */
  async #recordFailure(tried: { readonly email: string; readonly userId: string }, origin: CallOrigin): Promise<void> {
    const { db, audit } = this.#deps;
    const name = tried.userId === "" ? "" : tried.email;
    const resource = { type: "user", id: tried.userId, name } as const;
    const actor: SystemActor = { kind: "system", name: "sign_in", origin };
    await audit.record(db, { actor, action: "session.sign_in_failed", projectId: null, resource });
  }
}

/** A person who is signed in, or has just proved who they are. */
export function signInActor(origin: CallOrigin, userId: string): SystemActor {
  return { kind: "system", name: "sign_in", origin, userId };
}

function aboutUser(id: string): {
  readonly projectId: null;
  readonly resource: { readonly type: "user"; readonly id: string };
} {
  return { projectId: null, resource: { type: "user", id } };
}
