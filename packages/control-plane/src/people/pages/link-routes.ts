import { nameSchema } from "@fairlead/protocol/values/text";
import type { FastifyRequest } from "fastify";
import { z } from "zod";
import type { HttpApp } from "../../http/http-app.ts";
import { limitFailures, type RateGuard } from "../../http/limits/rate-limit-guards.ts";
import { emailSchema } from "../users/user.ts";
import { accountAfter } from "./account-routes.ts";
import { callerOf } from "./html/callers.ts";
import { type FormErrors, fieldError, passwordSchema, readForm } from "./html/form-input.ts";
import type { PageServices } from "./html/page-deps.ts";
import { SECRET_ADDRESS_HEADERS } from "./html/page-headers.ts";
import { formFieldsOf, formTokenOf, goTo, PAGE, sendAgain, sendPage, setCookies } from "./html/page-scope.ts";
import { type LinkForm, resetPage, setUpPage } from "./link-pages.ts";

/** A page whose URL is a secret. Limits guesses and requests with old URLs. */
export function secretPage(limits: PageServices["limits"]): typeof PAGE & { readonly onRequest: RateGuard[] } {
  const hideAddress: RateGuard = async (_request, reply) => void reply.headers(SECRET_ADDRESS_HEADERS);
  return { ...PAGE, onRequest: [hideAddress, limitFailures(limits.links)] };
}

const paramsSchema = z.object({ token: z.string() });

export function linkTokenOf(request: FastifyRequest): string {
  return paramsSchema.parse(request.params).token;
}

/** The page's form, empty or with the values sent. */
export function linkForm(request: FastifyRequest, errors: FormErrors = {}): LinkForm {
  const [path = ""] = request.url.split("?", 1);
  const fields = request.method === "POST" ? formFieldsOf(request) : {};
  return { path, token: formTokenOf(request), fields, errors };
}

export function registerSetUpRoutes(app: HttpApp, { entry, signIn, limits }: PageServices): void {
  const password = signIn.passwordEnabled;
  const formSchema = z.strictObject({
    email: emailSchema,
    name: nameSchema,
    password: passwordFieldOf(signIn),
  });

  app.get("/set-up/:token", secretPage(limits), async (request, reply) => {
    await entry.requireSetUp(linkTokenOf(request));
    return sendPage(request, reply, setUpPage({ ...linkForm(request), password }));
  });

  app.post("/set-up/:token", secretPage(limits), async (request, reply) => {
    const token = linkTokenOf(request);
    await entry.requireSetUp(token);
    const { values, errors } = readForm(formSchema, formFieldsOf(request));
    if (errors) return sendAgain(request, reply, setUpPage({ ...linkForm(request, errors), password }));
    try {
      const person = { ...values, password: values.password ?? null };
      const done = await entry.setUp({ ...person, token, caller: callerOf(request) });
      setCookies(reply, done.setCookies);
    } catch (error) {
      const wrong = fieldError(error);
      return sendAgain(request, reply, setUpPage({ ...linkForm(request, wrong), password }));
    }
    return goTo(reply, accountAfter("welcome"));
  });
}

/** The field exists only if password sign-in is enabled. */
function passwordFieldOf({ passwordEnabled }: PageServices["signIn"]): z.ZodType<string | undefined> {
  return passwordEnabled ? passwordSchema : z.undefined().optional();
}

const resetForm = z.strictObject({
  /** Shown for password managers; the user is determined by the link. */
  email: z.string(),
  password: passwordSchema,
});

export function registerResetRoutes(app: HttpApp, { entry, signIn, limits }: PageServices): void {
  app.get("/reset/:token", secretPage(limits), async (request, reply) => {
    const { id, email } = await entry.requireReset(linkTokenOf(request));
    const endsSessions = await signIn.hasPassword(id);
    return sendPage(request, reply, resetPage({ ...linkForm(request), email, endsSessions }));
  });

  app.post("/reset/:token", secretPage(limits), async (request, reply) => {
    const token = linkTokenOf(request);
    const { id, email } = await entry.requireReset(token);
    const endsSessions = await signIn.hasPassword(id);
    const { values, errors } = readForm(resetForm, formFieldsOf(request));
    if (errors) return sendAgain(request, reply, resetPage({ ...linkForm(request, errors), email, endsSessions }));
    try {
      const done = await entry.reset({ token, password: values.password, caller: callerOf(request) });
      setCookies(reply, done.setCookies);
      return goTo(reply, accountAfter(done.endedOthers ? "reset" : "password_set"));
    } catch (error) {
      return sendAgain(request, reply, resetPage({ ...linkForm(request, fieldError(error)), email, endsSessions }));
    }
  });
}
