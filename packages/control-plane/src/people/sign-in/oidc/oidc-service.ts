import { cookieScope } from "@fairlead/hosting/public-url";
import { DomainError } from "@fairlead/protocol/errors";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { IdSource } from "@fairlead/protocol/values/ids";
import { nameSchema } from "@fairlead/protocol/values/text";
import type { Kysely } from "kysely";
import { z } from "zod";
import type { AuditService } from "../../../access/audit/audit-service.ts";
import type { CallOrigin } from "../../../access/auth/principal.ts";
import type { SecretSealer } from "../../../access/auth/sealing/sealer.ts";
import type { Database } from "../../../installation/db/tables/schema.ts";
import { emailSchema, type SignInSession } from "../../users/user.ts";
import type { UserService } from "../../users/user-service.ts";
import { AccountStore } from "../account-store.ts";
import type { LinkedAccount, SignedIn, SignInCaller, SignInProvider } from "../sign-in.ts";
import { type SignInService, signInActor } from "../sign-in-service.ts";
import type { OidcClient, OidcPerson } from "./oidc-client.ts";

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

/** Sealed state in the browser during the sign-in, which binds the callback to this browser. */
const flowSchema = z.object({
  provider: z.string(),
  state: z.string(),
  nonce: z.string(),
  codeVerifier: z.string(),
  returnTo: z.string(),
  /** The user to connect the account to; null: sign in. */
  linkTo: z.string().nullable(),
  expiresAt: z.number(),
});
type Flow = z.infer<typeof flowSchema>;

const FLOW_SECONDS = 600;
const SEALING_CONTEXT = "sign-in by OIDC";

/** The callback's request. */
interface Arrival {
  readonly client: OidcClient;
  readonly person: OidcPerson;
}

/** Sign-in with OIDC providers, and connecting their accounts to users. */
export class OidcService {
  readonly #deps: OidcServiceDeps;
  readonly #cookie: { readonly name: string; readonly attributes: string };

  constructor(deps: OidcServiceDeps) {
    this.#deps = deps;
    const { prefix, path, secure } = cookieScope(deps.publicUrl);
    const attributes = `Path=${path}; HttpOnly; SameSite=Lax${secure ? "; Secure" : ""}`;
    this.#cookie = { name: `${prefix}fairlead_oidc`, attributes };
  }

  /** For the buttons. */
  providers(): readonly SignInProvider[] {
    return this.#deps.clients.map(({ provider: { id, name } }) => ({ id, name }));
  }

  /**
   * @param input `linkTo`: the session of a user who connects an account; null to sign in.
   * @returns the provider's sign-in URL. @throws DomainError not_found, unavailable
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
   * Handles the callback.
   * @param input `query` as received; `cookies`: the whole header. @returns the new session, or the existing one when connecting
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

  /** @throws DomainError not_found; permission_denied for the last way to sign in */
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
      throw new DomainError("permission_denied", "This is your only way to sign in, so it cannot be disconnected.");
    }
    await db.transaction().execute(async (transaction) => {
      if (!(await new AccountStore(transaction).unlink(userId, providerId))) {
        throw new DomainError("not_found", "You have not connected an account of this provider.");
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

  /** Creates a new user. An account with the same address never takes over an existing user. */
  async #createUser(
    { client, person }: Arrival,
    { email, caller }: { readonly email: string; readonly caller: SignInCaller },
  ): Promise<string> {
    const { db, signIn, users } = this.#deps;
    const { id: providerId, name: providerName } = client.provider;
    if (!(await users.hasAny())) {
      throw new DomainError(
        "permission_denied",
        "This platform is not set up yet. Its first administrator must set it up.",
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
      // Created concurrently, for example in another tab.
      const known = await this.#userOf(providerId, person);
      if (known !== null) return known;
      throw new DomainError(
        "permission_denied",
        `There is already a user with the email address ${email}. If this is you, sign in as before, and connect ${providerName} on your account page.`,
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
      throw new DomainError("already_exists", `This account of ${name} is connected to another user.`);
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
    throw new DomainError("not_found", "This sign-in provider does not exist.");
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
  const what = parsed.success ? "has not verified your email address" : "did not provide your email address";
  throw new DomainError("permission_denied", `${provider} ${what}, so you cannot sign in with it.`);
}

function begunElsewhere(): DomainError {
  return new DomainError(
    "invalid_request",
    "This sign-in was started in another browser, or took too long. Start again.",
  );
}
