import { DomainError } from "@fairlead/protocol/errors";
import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { HttpApp } from "../../http/http-app.ts";
import { localPath, RETURN_TO, SIGN_IN_PAGE } from "../sign-in/sign-in.ts";
import { callerOf } from "./html/callers.ts";
import { passwordSchema, readForm } from "./html/form-input.ts";
import type { PageServices } from "./html/page-deps.ts";
import {
  formFieldsOf,
  formTokenOf,
  goTo,
  PAGE,
  sendAgain,
  sendPage,
  setCookies,
  visitorOf,
} from "./html/page-scope.ts";
import { onwardPage } from "./html/plain-pages.ts";
import { type SignInPage, signInPage } from "./sign-in-page.ts";

const returnTo = z.string().max(4096).optional();
/** Not validated as an address: the response to strangers must not depend on it. */
const signInForm = z.strictObject({
  email: z.string().max(320),
  password: passwordSchema,
  [RETURN_TO]: returnTo,
});
const signOutForm = z.strictObject({ [RETURN_TO]: returnTo });
const querySchema = z.object({ [RETURN_TO]: returnTo });

export function registerSignInRoutes(app: HttpApp, services: PageServices): void {
  const { signIn, oidc, limits, publicUrl } = services;
  const ownPath = (text: string | undefined): string | null => localPath(text, publicUrl);

  const page = (request: FastifyRequest, more: Partial<SignInPage>): ReturnType<typeof signInPage> =>
    signInPage({
      token: formTokenOf(request),
      returnTo: undefined,
      providers: oidc.providers(),
      password: signIn.passwordEnabled,
      ...more,
    });

  app.get("/", PAGE, async (request, reply) => goTo(reply, visitorOf(request) ? "/account" : SIGN_IN_PAGE));

  app.get(SIGN_IN_PAGE, PAGE, async (request, reply) => {
    const to = ownPath(querySchema.parse(request.query)[RETURN_TO]);
    if (visitorOf(request)) return goOn(request, reply, to ?? "/account");
    return sendPage(request, reply, page(request, { returnTo: to ?? undefined }));
  });

  app.post(SIGN_IN_PAGE, PAGE, async (request, reply) => {
    const { values } = readForm(signInForm, formFieldsOf(request));
    if (values === null) throw new DomainError("invalid_request", "The address or password is too long.");
    const { email, password } = values;
    const to = ownPath(values[RETURN_TO]);
    const caller = callerOf(request);
    try {
      const attempt = { address: caller.origin.address, account: email };
      const done = await limits.signIn.attempt(attempt, () => signIn.signInWithPassword({ email, password, caller }));
      setCookies(reply, done.setCookies);
    } catch (error) {
      if (!(error instanceof DomainError) || error.code !== "invalid_credential") throw error;
      return sendAgain(request, reply, page(request, { returnTo: to ?? undefined, email, failure: error.message }));
    }
    return goOn(request, reply, to ?? "/account");
  });

  app.post("/sign-out", PAGE, async (request, reply) => {
    const { values } = readForm(signOutForm, formFieldsOf(request));
    setCookies(reply, await signIn.signOut(request.headers.cookie, callerOf(request).origin));
    return goTo(reply, ownPath(values?.[RETURN_TO]) ?? SIGN_IN_PAGE);
  });
}

/** After a form: redirects within this host; targets outside (a waiting OAuth client) get a page. */
function goOn(request: FastifyRequest, reply: FastifyReply, path: string): FastifyReply {
  if (request.method === "GET" || !path.startsWith("/v1/")) return goTo(reply, path);
  return sendPage(request, reply, onwardPage(path, "the program that sent you here"));
}
