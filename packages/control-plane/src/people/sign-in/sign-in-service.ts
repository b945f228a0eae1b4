import { DomainError } from "@fairlead/protocol/errors";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { IdSource } from "@fairlead/protocol/values/ids";
import type { Kysely } from "kysely";
import type { AuditActor, SystemActor } from "../../access/audit/audit.ts";
import type { AuditService } from "../../access/audit/audit-service.ts";
import type { CallOrigin } from "../../access/auth/principal.ts";
import type { Database } from "../../installation/db/tables/schema.ts";
import type { SessionService } from "../users/session-service.ts";
import { emailSchema, type SignInSession, type UserRecord } from "../users/user.ts";
import type { UserService } from "../users/user-service.ts";
import { AccountStore, type PasswordAccount } from "./account-store.ts";
import type { Library } from "./library/library.ts";
import type { LibraryCalls } from "./library/library-calls.ts";
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
  /** Whether password sign-in is enabled. */
  readonly passwordEnabled: boolean;
}

/** A validated and hashed password, created before the transaction, because hashing is slow. */
export interface PreparedPassword {
  readonly hash: string;
}

export interface CreatePasswordUser {
  readonly email: string;
  readonly name: string;
  readonly platformAdmin: boolean;
  /** Null for a user of an OIDC provider. */
  readonly password: PreparedPassword | null;
  readonly actor: AuditActor;
}

const MAX_USER_AGENT = 256;

/** Sign-in, sign-out and passwords. Wraps the sign-in library, which only this room uses. */
export class SignInService {
  readonly passwordEnabled: boolean;
  readonly #deps: SignInServiceDeps;

  constructor(deps: SignInServiceDeps) {
    this.#deps = deps;
    this.passwordEnabled = deps.passwordEnabled;
  }

  /** @throws DomainError invalid_credential, with the same text and cost for every reason; permission_denied */
  async signInWithPassword(input: {
    readonly email: string;
    readonly password: string;
    readonly caller: SignInCaller;
  }): Promise<SignedIn> {
    const { email, password, caller } = input;
    if (!this.passwordEnabled) {
      throw new DomainError("permission_denied", "Passwords are not used here. Sign in with a provider.");
    }
    const known = await this.#findPassword(email);
    // Limits hashing work; passwords of four-byte characters still fit.
    const fits = password.length <= 4 * PASSWORD_MAX;
    const { right, outdated } = await this.#deps.hasher.check(
      fits ? password : "",
      known?.hash ?? null,
      caller.origin.address,
    );
    if (!known || !right || !fits) {
      await this.#recordFailure({ email, userId: known?.userId ?? "" }, caller.origin);
      throw new DomainError("invalid_credential", "The email address or password is wrong.");
    }
    if (outdated) await this.#rehash(known, password, caller.origin);
    return this.openSession(known.userId, caller, "password");
  }

  /** @throws DomainError invalid_request with `param: "password"`; overloaded */
  async preparePassword(
    input: { readonly email: string; readonly password: string },
    { address }: Pick<CallOrigin, "address">,
  ): Promise<PreparedPassword> {
    refuseWeakPassword(input.password, input.email);
    return { hash: await this.#deps.hasher.hash(input.password, address) };
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
   * Sets a password with a one-time link and ends the user's sessions, unless it is the first password.
   * @returns ids of ended sessions: pass them to `SessionService.announce` after the transaction.
   */
  async setPassword(
    transaction: Kysely<Database>,
    input: { readonly userId: string; readonly password: PreparedPassword; readonly actor: AuditActor },
  ): Promise<readonly string[]> {
    const { userId, password, actor } = input;
    const known = await new AccountStore(transaction).findPassword({ userId });
    await this.#keepPassword(transaction, userId, password);
    await this.#deps.audit.record(transaction, { ...aboutUser(userId), actor, action: "user.password_reset" });
    return known?.hash ? this.#deps.sessions.endOthers(transaction, userId, null) : [];
  }

  /** Ends the user's other sessions. @throws DomainError invalid_request with `param: "current"` or `"password"` */
  async changePassword(
    session: SignInSession,
    input: { readonly current: string; readonly next: string; readonly origin: CallOrigin },
  ): Promise<void> {
    const { db, sessions, users, audit, hasher } = this.#deps;
    const { userId } = session;
    const known = await new AccountStore(db).findPassword({ userId });
    const { right } = await hasher.check(input.current, known?.hash ?? null, input.origin.address);
    if (!right) throw new DomainError("invalid_request", "This is not your current password.", { param: "current" });
    const { email } = await users.get(userId);
    const password = await this.preparePassword({ email, password: input.next }, input.origin);
    const ended = await db.transaction().execute(async (transaction) => {
      await this.#keepPassword(transaction, userId, password);
      const actor = signInActor(input.origin, userId);
      await audit.record(transaction, { ...aboutUser(userId), actor, action: "user.password_change" });
      return sessions.endOthers(transaction, userId, session.id);
    });
    sessions.announce(ended);
  }

  /** False for a user of an OIDC provider. */
  async hasPassword(userId: string): Promise<boolean> {
    const known = await new AccountStore(this.#deps.db).findPassword({ userId });
    return known !== null && known.hash !== null;
  }

  /**
   * Creates the session of an authenticated user.
   * @param by for the audit log: `password`, a provider's id, `invitation`…
   */
  async openSession(userId: string, caller: SignInCaller, by: string): Promise<SignedIn> {
    const { library, calls, sessions, audit } = this.#deps;
    const { origin } = caller;
    const userAgent = (caller.userAgent ?? "").slice(0, MAX_USER_AGENT);
    return calls.run(async ({ transaction }) => {
      const { sessionId, setCookies } = await library.openSession({ userId, ipAddress: origin.address, userAgent });
      const session = await sessions.find(sessionId, transaction);
      if (!session) throw new Error("the session that was just created does not exist");
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

  /** @returns null without a valid session cookie. @throws the store's error */
  async sessionOfCookie(cookies: string | undefined): Promise<SignInSession | null> {
    if (cookies === undefined) return null;
    const { library, calls, sessions } = this.#deps;
    const headers = new Headers({ cookie: cookies });
    const found = await calls.read(() => library.sessionOf(headers));
    return found === null ? null : sessions.find(found.sessionId);
  }

  /** Ends this browser's session, if any. @returns `Set-Cookie` values that clear it. */
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

  async #rehash({ userId, hash }: PasswordAccount, password: string, { address }: CallOrigin): Promise<void> {
    const next = await this.#deps.hasher.hash(password, address);
    await new AccountStore(this.#deps.db).replaceHash(userId, { old: hash ?? "", next });
  }

  /** The input may be a password in the wrong field, so only known addresses are recorded. */
  async #recordFailure(tried: { readonly email: string; readonly userId: string }, origin: CallOrigin): Promise<void> {
    const { db, audit } = this.#deps;
    const name = tried.userId === "" ? "" : tried.email;
    const resource = { type: "user", id: tried.userId, name } as const;
    const actor: SystemActor = { kind: "system", name: "sign_in", origin };
    await audit.record(db, { actor, action: "session.sign_in_failed", projectId: null, resource });
  }
}

/** A user who has a session or is signing in. */
export function signInActor(origin: CallOrigin, userId: string): SystemActor {
  return { kind: "system", name: "sign_in", origin, userId };
}

function aboutUser(id: string): {
  readonly projectId: null;
  readonly resource: { readonly type: "user"; readonly id: string };
} {
  return { projectId: null, resource: { type: "user", id } };
}
