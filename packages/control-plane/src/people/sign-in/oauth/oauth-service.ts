import { DomainError } from "@fairlead/protocol/errors";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { IdSource } from "@fairlead/protocol/values/ids";
import type { Kysely } from "kysely";
import { z } from "zod";
import type { AuditAction } from "../../../access/audit/audit.ts";
import type { AuditService } from "../../../access/audit/audit-service.ts";
import type { CallOrigin } from "../../../access/auth/principal.ts";
import type { Database } from "../../../installation/db/tables/schema.ts";
import type { Library } from "../library/library.ts";
import type { LibraryCalls } from "../library/library-calls.ts";
import type { EndpointInput } from "../library/library-oauth.ts";
import { CONSENT_PAGE, RETURN_TO, SIGN_IN_PAGE } from "../sign-in.ts";
import { type SignInService, signInActor } from "../sign-in-service.ts";
import {
  type AccessRequest,
  type DeviceAccessRequest,
  OAUTH_PATHS,
  type OAuthClient,
  OAuthRefusal,
  PLATFORM_RESOURCE,
  registeredClient,
  shownUserCode,
  wholeScope,
} from "./oauth.ts";
import { readOAuthRefusal } from "./oauth-answer.ts";
import type { authorizationQuery, deviceForm } from "./oauth-forms.ts";
import { OAuthStore } from "./oauth-store.ts";

/** The requester of a device code. */
export interface DeviceCaller {
  readonly address: string;
  readonly userAgent: string | undefined;
}

export interface OAuthServiceDeps {
  readonly db: Kysely<Database>;
  readonly library: Library;
  readonly calls: LibraryCalls;
  readonly signIn: SignInService;
  readonly audit: AuditService;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly clients: readonly OAuthClient[];
  readonly publicUrl: string;
}

const redirectAnswer = z.object({ url: z.string() });
const deviceAnswer = z.object({
  user_code: z.string(),
  verification_uri: z.string(),
  expires_in: z.number(),
  interval: z.number(),
});
type DeviceAuthorization = z.infer<typeof deviceAnswer> & {
  readonly device_code: string;
  readonly verification_uri_complete: string;
};
const MAX_USER_AGENT = 200;
const deviceRequest = z.object({ status: z.string(), client_id: z.string().optional(), scope: z.string().optional() });

/** How a program gets a user's consent: in a browser on the same machine, or with a code on any other. */
export class OAuthService {
  readonly #deps: OAuthServiceDeps;

  constructor(deps: OAuthServiceDeps) {
    this.#deps = deps;
  }

  /** Writes the registered clients to the store. Call once before the first request. */
  async start(): Promise<void> {
    const { db, library, clients, ids, clock } = this.#deps;
    await library.ready;
    const rows = clients.map((client) => ({ ...client, rowId: ids.next("signInRecord") }));
    await db.transaction().execute((transaction) => new OAuthStore(transaction).keepClients(rows, clock.now()));
  }

  /**
   * @returns where to send the browser: to sign-in, to consent, or back to the client with an error.
   * @throws OAuthRefusal if the request has no trustworthy client or redirect
   */
  async authorize(request: z.infer<typeof authorizationQuery>, cookies: string | undefined): Promise<string> {
    const { calls, library, publicUrl } = this.#deps;
    registeredClient(this.#deps.clients, request.client_id);
    const scope = wholeScope(request.scope);
    // Consent is required each time: otherwise anyone who can reach a loopback port could get a code unnoticed (RFC 8252 §8.6).
    const query = defined({ ...request, scope, resource: PLATFORM_RESOURCE, prompt: "consent" });
    const url = new URL(`${publicUrl}${OAUTH_PATHS.authorize}?${new URLSearchParams(query).toString()}`);
    const headers = browserHeaders(cookies);
    const { url: location } = await calls.read(async () => {
      const input = { asResponse: true, query, headers, request: new Request(url, { headers }) } as const;
      return this.#answer(await library.oauth.oauth2Authorize(input), redirectAnswer);
    });
    if (location.startsWith(`${CONSENT_PAGE}?`)) return location;
    if (location.startsWith(`${SIGN_IN_PAGE}?`)) return signInFirst(request);
    return this.#toClient(location, request.redirect_uri);
  }

  /** @param query of the consent page. @throws DomainError not_found */
  describeConsent(query: string): AccessRequest & { readonly redirectHost: string } {
    const parameters = new URLSearchParams(query);
    const client = this.#deps.clients.find(({ id }) => id === parameters.get("client_id"));
    const redirect = URL.parse(parameters.get("redirect_uri") ?? "");
    if (!client || !redirect) throw unknownRequest();
    return { ...describe(client, parameters.get("scope")), redirectHost: redirect.host };
  }

  /**
   * The user's decision on the consent page.
   * @param decision `query` is the consent page's, complete. @returns the client's redirect URL
   * @throws DomainError invalid_credential without a session; not_found for a changed or expired request
   */
  async decideConsent(decision: {
    readonly query: string;
    readonly accept: boolean;
    readonly cookies: string | undefined;
    readonly origin: CallOrigin;
  }): Promise<string> {
    const { calls, library, publicUrl } = this.#deps;
    const { query, accept, cookies, origin } = decision;
    const userId = await this.#userOf(cookies);
    const { client, redirectUri } = this.#consented(query);
    const headers = browserHeaders(cookies);
    return calls.run(async ({ transaction }) => {
      const body = { accept, oauth_query: query };
      const request = new Request(`${publicUrl}${OAUTH_PATHS.authorize}`, { headers, method: "POST" });
      const response = await library.oauth.oauth2Consent({ asResponse: true, body, headers, request });
      if (!response.ok) throw unknownRequest();
      const { url } = redirectAnswer.parse(await response.json());
      if (accept) await this.#record(transaction, { action: "oauth.authorize", userId, client, origin });
      return this.#toClient(url, redirectUri);
    });
  }

  /** Starts a device authorization. @throws OAuthRefusal */
  async requestDevice(request: z.infer<typeof deviceForm>, from: DeviceCaller): Promise<DeviceAuthorization> {
    const { calls, library, ids, clock } = this.#deps;
    const { id } = registeredClient(this.#deps.clients, request.client_id);
    const body = { client_id: id, scope: wholeScope(request.scope), resource: PLATFORM_RESOURCE };
    return calls.run(async (call) => {
      const response = await library.oauth.deviceCode({ asResponse: true, body, headers: new Headers() });
      const { user_code, ...answer } = await this.#answer(response, deviceAnswer);
      const shown = shownUserCode(user_code);
      const complete = `${answer.verification_uri}?${new URLSearchParams({ user_code: shown }).toString()}`;
      const now = clock.now();
      const asked = { at: now, address: from.address, userAgent: (from.userAgent ?? "").slice(0, MAX_USER_AGENT) };
      const row = { id: ids.next("signInRecord"), now, expiresAt: now + answer.expires_in * 1000 };
      await new OAuthStore(call.transaction).keepDeviceRequest(user_code, asked, row);
      if (call.deviceCode === null) throw new Error("a device authorization returned no code");
      return { device_code: call.deviceCode, user_code: shown, verification_uri_complete: complete, ...answer };
    });
  }

  /** The request of an entered code, which is bound to this user from then on. @throws DomainError not_found, invalid_credential */
  async describeDevice(userCode: string, cookies: string | undefined): Promise<DeviceAccessRequest> {
    const { calls, library, clock } = this.#deps;
    await this.#userOf(cookies);
    return calls.run(async ({ transaction }) => {
      const request = await this.#describeDevice(userCode, { library, headers: browserHeaders(cookies) });
      const asked = await new OAuthStore(transaction).findDeviceRequest(userCode);
      if (asked === null) throw unknownCode();
      const { at, address, userAgent } = asked;
      return { ...request, from: { address, userAgent, secondsAgo: Math.max(0, (clock.now() - at) / 1000) } };
    });
  }

  /** @throws DomainError not_found, invalid_credential */
  async decideDevice(decision: {
    readonly userCode: string;
    readonly approve: boolean;
    readonly cookies: string | undefined;
    readonly origin: CallOrigin;
  }): Promise<void> {
    const { calls, library } = this.#deps;
    const { userCode, approve, cookies, origin } = decision;
    const userId = await this.#userOf(cookies);
    const headers = browserHeaders(cookies);
    await calls.run(async ({ transaction }) => {
      const { client } = await this.#describeDevice(userCode, { library, headers });
      const input: EndpointInput = { asResponse: true, body: { userCode }, headers };
      const response = await (approve ? library.oauth.deviceApprove(input) : library.oauth.deviceDeny(input));
      if (!response.ok) throw unknownCode();
      const action = approve ? "oauth.device_approve" : "oauth.device_deny";
      await this.#record(transaction, { action, userId, client, origin });
    });
  }

  async #describeDevice(
    userCode: string,
    { library, headers }: { readonly library: Library; readonly headers: Headers },
  ): Promise<AccessRequest> {
    const query = { user_code: userCode };
    const response = await library.oauth.deviceVerify({ asResponse: true, query, headers });
    if (!response.ok) throw unknownCode();
    const { status, client_id: clientId, scope } = deviceRequest.parse(await response.json());
    const client = this.#deps.clients.find(({ id }) => id === clientId);
    if (status !== "pending" || !client) throw unknownCode();
    return describe(client, scope ?? null);
  }

  #consented(query: string): { readonly client: AccessRequest["client"]; readonly redirectUri: string } {
    const { client } = this.describeConsent(query);
    return { client, redirectUri: new URLSearchParams(query).get("redirect_uri") ?? "" };
  }

  async #userOf(cookies: string | undefined): Promise<string> {
    const session = await this.#deps.signIn.sessionOfCookie(cookies);
    if (session) return session.userId;
    throw new DomainError("invalid_credential", "You are no longer signed in. Sign in again.");
  }

  async #answer<T>(response: Response, schema: z.ZodType<T>): Promise<T> {
    if (!response.ok) throw await readOAuthRefusal(response);
    return schema.parse(await response.json());
  }

  /** @throws OAuthRefusal if the library would show its own error page, because no redirect can be trusted. */
  #toClient(location: string, redirectUri: string): string {
    const url = new URL(location);
    const own = URL.parse(redirectUri);
    if (url.protocol !== own?.protocol || url.host !== own.host || url.pathname !== own.pathname) {
      throw new OAuthRefusal("invalid_request", "The redirect URI is not registered for this client.");
    }
    // The library writes https for all issuers except loopback, and clients compare (RFC 9207 §2.4).
    if (url.searchParams.has("iss")) url.searchParams.set("iss", this.#deps.publicUrl);
    return url.href;
  }

  async #record(
    transaction: Kysely<Database>,
    event: {
      readonly action: AuditAction;
      readonly userId: string;
      readonly client: AccessRequest["client"];
      readonly origin: CallOrigin;
    },
  ): Promise<void> {
    const { action, userId, client, origin } = event;
    await this.#deps.audit.record(transaction, {
      actor: signInActor(origin, userId),
      action,
      projectId: null,
      resource: { type: "user", id: userId },
      detail: { client: client.id },
    });
  }
}

function signInFirst(request: z.infer<typeof authorizationQuery>): string {
  const here = `${OAUTH_PATHS.authorize}?${new URLSearchParams(defined({ ...request })).toString()}`;
  return `${SIGN_IN_PAGE}?${new URLSearchParams({ [RETURN_TO]: here }).toString()}`;
}

function describe({ id, name }: OAuthClient, scope: string | null): AccessRequest {
  return { client: { id, name }, scopes: scope?.split(" ") ?? [] };
}

/** The library redirects browsers; JSON is easier to read. */
function browserHeaders(cookies: string | undefined): Headers {
  return new Headers({ accept: "application/json", ...(cookies === undefined ? {} : { cookie: cookies }) });
}

function defined(values: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const given = Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return Object.fromEntries(given);
}

function unknownRequest(): DomainError {
  return new DomainError(
    "not_found",
    "This request has expired or was changed. Start again in the program that sent you here.",
  );
}

function unknownCode(): DomainError {
  return new DomainError("not_found", "This code is invalid: it was mistyped, already used, or has expired.");
}
