import { DomainError } from "@fairlead/protocol/errors";
import type { FastifyReply, FastifyRequest } from "fastify";
import { explainError, type HttpApp } from "../http/http-app.ts";
import { RETURN_TO, SIGN_IN_PAGE } from "../sign-in/sign-in.ts";
import type { SignInSession } from "../users/user.ts";
import type { Assets } from "./assets.ts";
import { FORM_TOKEN } from "./fields.ts";
import type { FormGuard } from "./form-guard.ts";
import { type FormFields, parseForm } from "./form-input.ts";
import { layout, type Page } from "./layout.ts";
import { pageHeaders } from "./page-headers.ts";
import { errorPage } from "./plain-pages.ts";

/** What all pages share: who looks, the headers, the guard of forms, and errors as pages. Nothing of it touches `/v1`. */

export interface PageScopeOptions {
  readonly publicUrl: string;
  readonly guard: FormGuard;
  readonly assets: Assets;
  /** @param cookies the header, whole. */
  readonly sessionOfCookie: (cookies: string | undefined) => Promise<SignInSession | null>;
}

interface Visit {
  readonly session: SignInSession | null;
  /** For the forms of the page that answers. */
  readonly token: string;
  readonly assets: Assets;
}

declare module "fastify" {
  interface FastifyRequest {
    /** On pages alone. */
    visit: Visit | null;
  }
}

/** Pages are short; so is what people type. */
const MAX_FORM_BYTES = 32_768;

export function openPageScope(app: HttpApp, options: PageScopeOptions, routes: (scope: HttpApp) => void): void {
  const headers = pageHeaders(options.publicUrl);
  void app.register(async (scope: HttpApp) => {
    acceptForms(scope);
    scope.decorateRequest("visit", null);
    scope.addHook("onRequest", async (request, reply) => {
      void reply.headers(headers);
      await receive(request, reply, options);
    });
    scope.addHook("preHandler", async (request) => {
      if (request.method === "POST") request.body = checkedForm(request, options.guard);
    });
    scope.setErrorHandler((thrown, request, reply) => {
      const { error, answer } = explainError(thrown, request);
      void reply.code(answer.status).headers({ ...answer.headers, "content-type": HTML });
      void reply.send(render(errorPage(error, request.id), request.visit, options.assets));
    });
    routes(scope);
  });
}

const HTML = "text/html; charset=utf-8";

/** Where a GET shows a page. `hide`: pages are for people, and in no API document. */
export const PAGE = { schema: { hide: true } } as const;

/** A page for people who are signed in; others are asked to sign in first, and come back. */
export const SIGNED_IN_PAGE = {
  ...PAGE,
  onRequest: async (request: FastifyRequest, reply: FastifyReply) =>
    visitorOf(request) === null ? askToSignIn(request, reply) : undefined,
} as const;

function askToSignIn(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const back = request.method === "GET" ? `?${new URLSearchParams({ [RETURN_TO]: request.url }).toString()}` : "";
  return goTo(reply, `${SIGN_IN_PAGE}${back}`);
}

export function sendPage(request: FastifyRequest, reply: FastifyReply, page: Page): FastifyReply {
  const { assets } = visitOf(request);
  return reply.type(HTML).send(render(page, request.visit, assets));
}

/** The same form once more, with what is wrong with it. */
export function sendAgain(request: FastifyRequest, reply: FastifyReply, page: Page): FastifyReply {
  return sendPage(request, reply.code(422), page);
}

/** After a form: the browser fetches the next page, so that a reload sends nothing twice. */
export function goTo(reply: FastifyReply, path: string): FastifyReply {
  return reply.redirect(path, 303);
}

/** Null: nobody has signed in with this browser. */
export function visitorOf(request: FastifyRequest): SignInSession | null {
  return visitOf(request).session;
}

/** On a `SIGNED_IN_PAGE`. */
export function requireVisitor(request: FastifyRequest): SignInSession {
  const session = visitorOf(request);
  if (session === null) throw new Error(`${request.routeOptions.url} is a page for everybody`);
  return session;
}

/** @param values of `Set-Cookie`. */
export function setCookies(reply: FastifyReply, values: readonly string[]): void {
  for (const value of values) void reply.header("set-cookie", value);
}

/** For the forms of the page that answers this request. */
export function formTokenOf(request: FastifyRequest): string {
  return visitOf(request).token;
}

/** The posted form; its token is checked and taken out. */
export function formOf(request: FastifyRequest): FormFields {
  return request.body as FormFields;
}

function visitOf({ visit, routeOptions }: FastifyRequest): Visit {
  if (visit === null) throw new Error(`${routeOptions.url} is no page`);
  return visit;
}

function render(page: Page, visit: Visit | null, assets: Assets): string {
  return layout(page, { assets, signedIn: visit !== null && visit.session !== null });
}

async function receive(request: FastifyRequest, reply: FastifyReply, options: PageScopeOptions): Promise<void> {
  const cookies = request.headers.cookie;
  const session = await options.sessionOfCookie(cookies);
  const { token, setCookie } = options.guard.tokenFor(cookies, session?.id ?? null);
  request.visit = { session, token, assets: options.assets };
  if (setCookie !== null) setCookies(reply, [setCookie]);
}

function checkedForm(request: FastifyRequest, guard: FormGuard): FormFields {
  if (typeof request.body !== "object" || request.body === null) throw notAForm();
  const { [FORM_TOKEN]: token, ...fields } = formOf(request);
  const { origin, cookie: cookies } = request.headers;
  const fetchSite = request.headers["sec-fetch-site"];
  const sessionId = visitorOf(request)?.id ?? null;
  guard.check({ origin, cookies, sessionId, token, fetchSite: fetchSite?.toString() });
  return fields;
}

/** Forms are the one thing that pages take; the API beside them takes JSON alone. */
function acceptForms(scope: HttpApp): void {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser(
    "application/x-www-form-urlencoded",
    { parseAs: "string", bodyLimit: MAX_FORM_BYTES },
    async (_request: FastifyRequest, text: string | Buffer) => parseForm(text.toString()),
  );
}

function notAForm(): DomainError {
  return new DomainError("unsupported_media_type", "This page takes forms alone.");
}
