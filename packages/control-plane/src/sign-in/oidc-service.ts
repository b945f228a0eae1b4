import type { Clock } from "@fairlead/protocol/clock";
import { DomainError } from "@fairlead/protocol/errors";
import type { IdSource } from "@fairlead/protocol/ids";
import { nameSchema } from "@fairlead/protocol/text";
import type { Kysely } from "kysely";
import { z } from "zod";
import type { AuditService } from "../audit/audit-service.ts";
import type { CallOrigin } from "../auth/principal.ts";
import type { SecretSealer } from "../auth/sealer.ts";
import type { Database } from "../db/schema.ts";
import { emailSchema, type SignInSession } from "../users/user.ts";
import type { UserService } from "../users/user-service.ts";
import { AccountStore } from "./account-store.ts";
import type { OidcClient, OidcPerson } from "./oidc-client.ts";
import type { LinkedAccount, SignedIn, SignInCaller, SignInProvider } from "./sign-in.ts";
import { type SignInService, signInActor } from "./sign-in-service.ts";

export interface OidcServiceDeps {
  readonly db: Kysely<Database>;
  readonly clients: readonly OidcClient[];
  readonly signIn: SignInService;
  readonly users: UserService;
  readonly audit: AuditService;
  readonly sealer: SecretSealer;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly publicUrl: string;
}

/** What the browser keeps while it is at the provider, sealed. It binds the way back to this browser. */
const flowSchema = z.object({
  provider: z.string(),
  state: z.string(),
  nonce: z.string(),
  codeVerifier: z.string(),
  returnTo: z.string(),
  /** Whom to link the account to; null: to sign in. */
  linkTo: z.string().nullable(),
  expiresAt: z.number(),
});
type Flow = z.infer<typeof flowSchema>;

const FLOW_SECONDS = 600;
const SEALING_CONTEXT = "sign-in by OIDC";

/** Where somebody came back from. */
interface Arrival {
  readonly client: OidcClient;
  readonly person: OidcPerson;
}

/** Signing in by OIDC providers, and linking their accounts to users. */
export class OidcService {
  readonly #deps: OidcServiceDeps;
  readonly #cookie: { readonly name: string; readonly attributes: string };

  constructor(deps: OidcServiceDeps) {
    this.#deps = deps;
    const secure = deps.publicUrl.startsWith("https:");
    const attributes = `Path=/; HttpOnly; SameSite=Lax${secure ? "; Secure" : ""}`;
    this.#cookie = { name: secure ? "__Host-fairlead_oidc" : "fairlead_oidc", attributes };
  }

  /** For the buttons. */
  providers(): readonly SignInProvider[] {
    return this.#deps.clients.map(({ provider: { id, name } }) => ({ id, name }));
  }

  /**
   * @param input `linkTo`: the session of somebody who wants to link the account; null to sign in.
   * @returns the provider's page to send the browser to. @throws DomainError not_found, unavailable
   */
  async begin(input: {
    readonly providerId: string;
    readonly returnTo: string;
    readonly linkTo: SignInSession | null;
  }): Promise<{ readonly location: string; readonly setCookies: readonly string[] }> {
    const { providerId, returnTo, linkTo } = input;
    const { location, checks } = await this.#clientOf(providerId).begin();
    const expiresAt = this.#deps.clock.now() + FLOW_SECONDS * 1000;
    const flow: Flow = { ...checks, provider: providerId, returnTo, linkTo: linkTo?.userId ?? null, expiresAt };
    const sealed = await this.#deps.sealer.seal(Buffer.from(JSON.stringify(flow)), SEALING_CONTEXT);
    return { location, setCookies: [this.#setCookie(sealed, FLOW_SECONDS)] };
  }

  /**
   * The browser has come back.
   * @param input `query` as it came; `cookies`: the header, whole. @returns a session: the new one, or where an account was linked the old one
   * @throws DomainError invalid_request (bad state), invalid_credential, permission_denied, already_exists, unavailable
   */
  async complete(input: {
    readonly providerId: string;
    readonly query: URLSearchParams;
    readonly cookies: string | undefined;
    readonly caller: SignInCaller;
  }): Promise<SignedIn & { readonly returnTo: string; readonly linked: boolean }> {
    const { providerId, query, cookies, caller } = input;
    const client = this.#clientOf(providerId);
    const flow = await this.#readFlow(cookies);
    if (flow?.provider !== providerId || query.get("state") !== flow.state) throw begunElsewhere();
    const arrival = { client, person: await client.complete(query, flow) };
    const signedIn =
      flow.linkTo === null
        ? await this.#signIn(arrival, caller)
        : await this.#link(arrival, { userId: flow.linkTo, cookies, caller });
    const setCookies = [...signedIn.setCookies, this.#setCookie("", 0)];
    return { ...signedIn, setCookies, returnTo: flow.returnTo, linked: flow.linkTo !== null };
  }

  /** Accounts of providers that a user can sign in with. */
  async linkedAccounts(userId: string): Promise<readonly LinkedAccount[]> {
    return new AccountStore(this.#deps.db).listLinked(userId);
  }

  /** @throws DomainError not_found; permission_denied for the last way in */
  async unlink(input: {
    readonly userId: string;
    readonly providerId: string;
    readonly origin: CallOrigin;
  }): Promise<void> {
    const { userId, providerId, origin } = input;
    const { db, signIn } = this.#deps;
    const others = (await this.linkedAccounts(userId)).filter((account) => account.providerId !== providerId);
    const hasPassword = signIn.passwordEnabled && (await signIn.hasPassword(userId));
    if (others.length === 0 && !hasPassword) {
      throw new DomainError("permission_denied", "This is your only way to sign in; it cannot be unlinked.");
    }
    await db.transaction().execute(async (transaction) => {
      if (!(await new AccountStore(transaction).unlink(userId, providerId))) {
        throw new DomainError("not_found", "You have linked no account of this provider.");
      }
      await this.#record(transaction, { action: "user.unlink", userId, providerId, origin });
    });
  }

  async #signIn({ client, person }: Arrival, caller: SignInCaller): Promise<SignedIn> {
    const { signIn } = this.#deps;
    const { id, name } = client.provider;
    const email = verifiedEmail(person, name);
    const known = await this.#userOf(id, person);
    const userId = known ?? (await this.#createUser({ client, person }, { email, caller }));
    return signIn.openSession(userId, caller, id);
  }

  /** A person who is new here. An existing user is never taken over by whoever has the same address elsewhere. */
  async #createUser(
    { client, person }: Arrival,
    { email, caller }: { readonly email: string; readonly caller: SignInCaller },
  ): Promise<string> {
    const { db, signIn, users } = this.#deps;
    const { id: providerId, name: providerName } = client.provider;
    if (!(await users.hasAny())) {
      throw new DomainError(
        "permission_denied",
        "This platform is not set up yet; its first administrator has to do that.",
      );
    }
    const actor = { kind: "system", name: "sign_in", origin: caller.origin } as const;
    const name = nameSchema.catch(email.slice(0, 80)).parse(person.name);
    try {
      return await db.transaction().execute(async (transaction) => {
        const user = await signIn.createUser(transaction, { email, name, platformAdmin: false, password: null, actor });
        await this.#insertLink(transaction, { userId: user.id, providerId, subject: person.subject });
        return user.id;
      });
    } catch (error) {
      if (!(error instanceof DomainError) || error.code !== "already_exists") throw error;
      // The same person may have come by another tab at the same moment.
      const known = await this.#userOf(providerId, person);
      if (known !== null) return known;
      throw new DomainError(
        "permission_denied",
        `There is a user with the e-mail address ${email} already. If that is you, sign in as before, and link ${providerName} on your account page.`,
        { cause: error },
      );
    }
  }

  async #link(
    { client, person }: Arrival,
    to: { readonly userId: string; readonly cookies: string | undefined; readonly caller: SignInCaller },
  ): Promise<SignedIn> {
    const { db, signIn } = this.#deps;
    const { id: providerId, name } = client.provider;
    const session = await signIn.sessionOfCookie(to.cookies);
    if (session?.userId !== to.userId) throw begunElsewhere();
    const owner = await this.#userOf(providerId, person);
    if (owner !== null && owner !== to.userId) {
      throw new DomainError("already_exists", `This account of ${name} belongs to another user here.`);
    }
    if (owner === null) {
      await db.transaction().execute(async (transaction) => {
        await this.#insertLink(transaction, { userId: to.userId, providerId, subject: person.subject });
        const { origin } = to.caller;
        await this.#record(transaction, { action: "user.link", userId: to.userId, providerId, origin });
      });
    }
    return { session, setCookies: [] };
  }

  async #userOf(providerId: string, { subject }: OidcPerson): Promise<string | null> {
    return new AccountStore(this.#deps.db).findUserOf(providerId, subject);
  }

  async #insertLink(
    transaction: Kysely<Database>,
    { userId, ...account }: { readonly userId: string; readonly providerId: string; readonly subject: string },
  ): Promise<void> {
    const { ids, clock } = this.#deps;
    await new AccountStore(transaction).link({ id: ids.next("signInRecord"), userId, now: clock.now() }, account);
  }

  async #record(
    transaction: Kysely<Database>,
    event: {
      readonly action: "user.link" | "user.unlink";
      readonly userId: string;
      readonly providerId: string;
      readonly origin: CallOrigin;
    },
  ): Promise<void> {
    const { action, userId, providerId, origin } = event;
    await this.#deps.audit.record(transaction, {
      actor: signInActor(origin, userId),
      action,
      projectId: null,
      resource: { type: "user", id: userId },
      detail: { provider: providerId },
    });
  }

  #clientOf(providerId: string): OidcClient {
    const client = this.#deps.clients.find(({ provider }) => provider.id === providerId);
    if (client) return client;
    throw new DomainError("not_found", "There is no such way to sign in here.");
  }

  async #readFlow(cookies: string | undefined): Promise<Flow | null> {
    const { sealer, clock } = this.#deps;
    const prefix = `${this.#cookie.name}=`;
    const cookie = cookies?.split("; ").find((text) => text.startsWith(prefix));
    if (cookie === undefined) return null;
    const plain = await sealer.open(cookie.slice(prefix.length), SEALING_CONTEXT).catch(() => null);
    const flow = plain && flowSchema.parse(JSON.parse(Buffer.from(plain).toString()));
    return flow && flow.expiresAt > clock.now() ? flow : null;
  }

  #setCookie(value: string, seconds: number): string {
    return `${this.#cookie.name}=${value}; Max-Age=${seconds}; ${this.#cookie.attributes}`;
  }
}

/** @throws DomainError permission_denied */
function verifiedEmail({ email, emailVerified }: OidcPerson, provider: string): string {
  const parsed = emailSchema.safeParse(email);
  if (parsed.success && emailVerified) return parsed.data;
  const what = parsed.success ? "has not verified your e-mail address" : "told us no e-mail address of yours";
  throw new DomainError("permission_denied", `${provider} ${what}, so you cannot sign in by it.`);
}

function begunElsewhere(): DomainError {
  return new DomainError(
    "invalid_request",
    "This sign-in was begun in another browser, or took too long. Begin again.",
  );
}
