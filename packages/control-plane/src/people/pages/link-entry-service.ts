import type { Role } from "@fairlead/protocol/resources";
import type { Kysely } from "kysely";
import type { Database } from "../../installation/db/tables/schema.ts";
import type { OneTimeLinkRecord } from "../one-time-links/one-time-link.ts";
import { type OneTimeLinkService, voidLink } from "../one-time-links/one-time-link-service.ts";
import type { SignedIn, SignInCaller } from "../sign-in/sign-in.ts";
import { type SignInService, signInActor } from "../sign-in/sign-in-service.ts";
import type { SessionService } from "../users/session-service.ts";
import type { UserRecord } from "../users/user.ts";
import type { UserService } from "../users/user-service.ts";

export interface LinkEntryServiceDeps {
  readonly db: Kysely<Database>;
  readonly links: OneTimeLinkService;
  readonly signIn: SignInService;
  readonly sessions: SessionService;
  readonly users: UserService;
}

interface NewPerson {
  readonly token: string;
  readonly name: string;
  readonly password: string;
  readonly caller: SignInCaller;
}

/**
 * Sign-in with one-time links. A link is used in the transaction of its effect, and the session is created after it. After a crash in
 * between, the user only has to sign in.
 */
export class LinkEntryService {
  readonly #deps: LinkEntryServiceDeps;

  constructor(deps: LinkEntryServiceDeps) {
    this.#deps = deps;
  }

  /** Valid until the first user exists. @throws DomainError not_found */
  async requireSetUp(token: string): Promise<OneTimeLinkRecord> {
    const link = await this.#require(token, "set_up");
    if (await this.#deps.users.hasAny()) throw voidLink();
    return link;
  }

  /**
   * Creates the first administrator.
   * @param person `password` is null if passwords are disabled, and a provider is connected afterwards.
   * @throws DomainError not_found; invalid_request for the password
   */
  async setUp(
    person: Omit<NewPerson, "password"> & { readonly email: string; readonly password: string | null },
  ): Promise<SignedIn> {
    const { db, links, signIn } = this.#deps;
    const { token, name, email, caller } = person;
    await this.requireSetUp(token);
    const password =
      person.password === null
        ? null
        : await signIn.preparePassword({ email, password: person.password }, caller.origin);
    const actor = { kind: "system", name: "sign_in", origin: caller.origin } as const;
    const user = await db.transaction().execute(async (transaction) => {
      const made = await signIn.createUser(transaction, { email, name, password, platformAdmin: true, actor });
      await links.spend(transaction, token, made.id);
      return made;
    });
    return signIn.openSession(user.id, caller, "set_up_link");
  }

  /** The user whose password the link sets. @throws DomainError not_found */
  async requireReset(token: string): Promise<UserRecord> {
    const { userId } = await this.#require(token, "reset");
    return this.#deps.users.get(userId ?? "");
  }

  /**
   * Ends the user's other sessions, unless this is the first password.
   * @throws DomainError not_found; invalid_request for the password
   */
  async reset({
    token,
    password,
    caller,
  }: Omit<NewPerson, "name">): Promise<SignedIn & { readonly endedOthers: boolean }> {
    const { db, links, signIn, sessions } = this.#deps;
    const { id: userId, email } = await this.requireReset(token);
    const prepared = await signIn.preparePassword({ email, password }, caller.origin);
    const actor = signInActor(caller.origin, userId);
    const ended = await db.transaction().execute(async (transaction) => {
      await links.spend(transaction, token, userId);
      return signIn.setPassword(transaction, { userId, password: prepared, actor });
    });
    sessions.announce(ended);
    return { ...(await signIn.openSession(userId, caller, "reset_link")), endedOthers: ended.length > 0 };
  }

  /** The invitation's user, project and role. @throws DomainError not_found */
  async requireInvitation(
    token: string,
  ): Promise<{ readonly email: string; readonly projectId: string; readonly role: Role }> {
    const { email, projectId, role } = await this.#require(token, "invitation");
    if (email === null || projectId === null || role === null) throw new Error("the invitation has no subject");
    return { email, projectId, role };
  }

  /** The project that this user already joined with the link, for a second click. */
  async projectJoinedBy(token: string, userId: string): Promise<string | null> {
    const link = await this.#deps.links.findUsedBy(token, userId);
    return link?.purpose === "invitation" ? link.projectId : null;
  }

  /**
   * Creates an account with the invited address. The link stays valid until the user has joined.
   * @throws DomainError not_found, already_exists; invalid_request for the password
   */
  async createInvited({ token, name, password, caller }: NewPerson): Promise<SignedIn> {
    const { db, signIn } = this.#deps;
    const { email } = await this.requireInvitation(token);
    const prepared = await signIn.preparePassword({ email, password }, caller.origin);
    const actor = { kind: "system", name: "sign_in", origin: caller.origin } as const;
    const user = await db
      .transaction()
      .execute((transaction) =>
        signIn.createUser(transaction, { email, name, password: prepared, platformAdmin: false, actor }),
      );
    return signIn.openSession(user.id, caller, "invitation");
  }

  async #require(token: string, purpose: OneTimeLinkRecord["purpose"]): Promise<OneTimeLinkRecord> {
    const link = await this.#deps.links.find(token);
    if (link?.purpose !== purpose) throw voidLink();
    return link;
  }
}
