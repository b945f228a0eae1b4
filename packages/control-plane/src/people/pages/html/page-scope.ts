import { publicPath } from "@fairlead/hosting/public-url";
import { DomainError } from "@fairlead/protocol/errors";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { ErrorPages } from "../../../http/errors/error-pages.ts";
import { explainError, type HttpApp } from "../../../http/http-app.ts";
import type { RateLimit } from "../../../http/limits/rate-limit.ts";
import { limitMisuse } from "../../../http/limits/rate-limit-guards.ts";
import { bodyParser } from "../../../http/requests/body-parser.ts";
import { RETURN_TO, SIGN_IN_PAGE } from "../../sign-in/sign-in.ts";
import type { SignInSession } from "../../users/user.ts";
import type { Assets } from "./assets.ts";
import { FORM_TOKEN } from "./fields.ts";
import type { FormGuard } from "./form-guard.ts";
import { type FormFields, parseForm } from "./form-input.ts";
import { type HtmlPage, layout } from "./layout.ts";
import { pageHeaders } from "./page-headers.ts";
import { errorPage } from "./plain-pages.ts";

/** Shared by all pages: session, headers, form protection, and error pages. Does not affect `/v1`. */

export interface PageScopeOptions {
  readonly publicUrl: string;
  readonly guard: FormGuard;
  /** Rejected form submissions, by address. */
  readonly limit: RateLimit;
  readonly assets: Assets;
  /** @param cookies the whole header. */
  readonly sessionOfCookie: (cookies: string | undefined) => Promise<SignInSession | null>;
}

interface Visit {
  readonly session: SignInSession | null;
  /** For the forms of the page. */
  readonly token: string;
  readonly assets: Assets;
  /** Prefix of every path sent to the browser. */
  readonly publicPath: string;
}

declare module "fastify" {
  interface FastifyRequest {
    /** Only on pages. */
    visit: Visit | null;
  }
}

/** Forms are small. */
const MAX_FORM_BYTES = 32_768;

export function openPageScope(app: HttpApp, options: PageScopeOptions, routes: (scope: HttpApp) => void): void {
  const headers = pageHeaders(options.publicUrl);
  void app.register(async (scope: HttpApp) => {
    acceptForms(scope);
    scope.decorateRequest("visit", null);
    const limited = limitMisuse(options.limit);
    scope.addHook("onRequest", async (request, reply) => {
      void reply.headers(headers);
      const elsewhere = publicAddress(request, options.publicUrl);
      if (elsewhere !== null) return reply.redirect(elsewhere, 302);
      if (request.method === "POST") await limited(request, reply);
      await receive(request, reply, options);
      return undefined;
    });
    scope.addHook("preHandler", async (request) => {
      if (request.method === "POST") request.body = checkedForm(request, options.guard);
    });
    scope.setErrorHandler((thrown, request, reply) => {
      const { error, answer } = explainError(thrown, request);
      void reply.code(answer.status).headers({ ...answer.headers, "content-type": HTML });
      const surroundings = { assets: options.assets, publicPath: publicPath(options.publicUrl) };
      void reply.send(render(errorPage(error, request.id), request.visit, surroundings));
    });
    routes(scope);
  });
}

/** For errors of paths that are not pages; the session is not read. */
export function errorPagesOf(publicUrl: string, assets: Assets): NonNullable<ErrorPages["render"]> {
  const headers = pageHeaders(publicUrl);
  const surroundings = { assets, publicPath: publicPath(publicUrl) };
  return (error, requestId) => ({ html: render(errorPage(error, requestId), null, surroundings), headers });
}

const HTML = "text/html; charset=utf-8";

/** Marks a redirected URL: behind a proxy that sends `localhost` as our name, redirects would loop. */
const MOVED = "moved";
const LOCAL_NAME = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])(?::\d+)?$/i;

/**
 * Cookies and form protection belong to the public URL, so signing in with another host name would fail after entering the password.
 * @returns where to redirect, or null
 */
function publicAddress({ method, url, headers }: FastifyRequest, publicUrl: string): string | null {
  const { host = "" } = headers;
  if (method !== "GET" || !LOCAL_NAME.test(host) || host === new URL(publicUrl).host) return null;
  const viaProxy = ["x-forwarded-for", "x-forwarded-host", "forwarded", "via"].some((name) => name in headers);
  const [path = "/", query = ""] = url.split("?", 2);
  const parameters = new URLSearchParams(query);
  if (viaProxy || parameters.has(MOVED)) return null;
  return `${publicUrl}${path}?${query === "" ? "" : `${query}&`}${MOVED}=1`;
}

/** Options of a page route. `hide`: pages are not in the API document. */
export const PAGE = { schema: { hide: true } } as const;

/** A page that requires a session; without one, redirects to the sign-in page and back. */
export const SIGNED_IN_PAGE = {
  ...PAGE,
  onRequest: async (request: FastifyRequest, reply: FastifyReply) =>
    visitorOf(request) === null ? askToSignIn(request, reply) : undefined,
} as const;

function askToSignIn(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const back = request.method === "GET" ? `?${new URLSearchParams({ [RETURN_TO]: request.url }).toString()}` : "";
  return goTo(reply, `${SIGN_IN_PAGE}${back}`);
}

export function sendPage(request: FastifyRequest, reply: FastifyReply, page: HtmlPage): FastifyReply {
  return reply.type(HTML).send(render(page, request.visit, visitOf(request)));
}

/** Shows the same form again, with errors. */
export function sendAgain(request: FastifyRequest, reply: FastifyReply, page: HtmlPage): FastifyReply {
  return sendPage(request, reply.code(422), page);
}

/** Redirects after a form, so that a reload does not resubmit it. @param path on this host */
export function goTo(reply: FastifyReply, path: string): FastifyReply {
  return reply.redirect(visitOf(reply.request).publicPath + path, 303);
}

/** Null: no session. */
export function visitorOf(request: FastifyRequest): SignInSession | null {
  return visitOf(request).session;
}

/** On a `SIGNED_IN_PAGE`. */
export function requireVisitor(request: FastifyRequest): SignInSession {
  const session = visitorOf(request);
  if (session === null) throw new Error(`${request.routeOptions.url} is a public page`);
  return session;
}

/** @param values of `Set-Cookie`. */
export function setCookies(reply: FastifyReply, values: readonly string[]): void {
  for (const value of values) void reply.header("set-cookie", value);
}

/** For the forms of the page of this request. */
export function formTokenOf(request: FastifyRequest): string {
  return visitOf(request).token;
}

/** The posted form, without its verified token. */
export function formFieldsOf(request: FastifyRequest): FormFields {
  return request.body as FormFields;
}

function visitOf({ visit, routeOptions }: FastifyRequest): Visit {
  if (visit === null) throw new Error(`${routeOptions.url} is no page`);
  return visit;
}

function render(page: HtmlPage, visit: Visit | null, surroundings: Pick<Visit, "assets" | "publicPath">): string {
  return layout(page, { ...surroundings, signedIn: visit !== null && visit.session !== null });
}

async function receive(request: FastifyRequest, reply: FastifyReply, options: PageScopeOptions): Promise<void> {
  const cookies = request.headers.cookie;
  const session = await options.sessionOfCookie(cookies);
  const { token, setCookie } = options.guard.tokenFor(cookies, session?.id ?? null);
  request.visit = { session, token, assets: options.assets, publicPath: publicPath(options.publicUrl) };
  if (setCookie !== null) setCookies(reply, [setCookie]);
}

function checkedForm(request: FastifyRequest, guard: FormGuard): FormFields {
  if (typeof request.body !== "object" || request.body === null) throw notAForm();
  const { [FORM_TOKEN]: token, ...fields } = formFieldsOf(request);
  const { origin, cookie: cookies } = request.headers;
  const fetchSite = request.headers["sec-fetch-site"];
  const sessionId = visitorOf(request)?.id ?? null;
  guard.check({ origin, cookies, sessionId, token, fetchSite: fetchSite?.toString() });
  return fields;
}

/** Pages accept only forms; the API accepts only JSON. */
function acceptForms(scope: HttpApp): void {
  scope.removeAllContentTypeParsers();
  const parse = (_request: FastifyRequest, body: Buffer): FormFields => parseForm(body.toString());
  scope.addContentTypeParser("application/x-www-form-urlencoded", bodyParser(MAX_FORM_BYTES, parse));
}

function notAForm(): DomainError {
  return new DomainError("unsupported_media_type", "This page only accepts forms.");
}
