import { nameSchema } from "@fairlead/protocol/text";
import type { FastifyRequest } from "fastify";
import { z } from "zod";
import type { HttpApp } from "../http/http-app.ts";
import { limitFailures, type RateGuard } from "../http/rate-limit-guards.ts";
import { emailSchema } from "../users/user.ts";
import { accountAfter } from "./account-routes.ts";
import { callerOf } from "./callers.ts";
import { type FormErrors, fieldError, passwordSchema, readForm } from "./form-input.ts";
import { type LinkForm, resetPage, setUpPage } from "./link-pages.ts";
import type { PageServices } from "./page-deps.ts";
import { SECRET_ADDRESS_HEADERS } from "./page-headers.ts";
import { formOf, formTokenOf, goTo, PAGE, sendAgain, sendPage, setCookies } from "./page-scope.ts";

/** A page whose address is a secret. Guessing one is limited, and so is knocking with an old one. */
export function secretPage(limits: PageServices["limits"]): typeof PAGE & { readonly onRequest: RateGuard[] } {
  const hideAddress: RateGuard = async (_request, reply) => void reply.headers(SECRET_ADDRESS_HEADERS);
  return { ...PAGE, onRequest: [hideAddress, limitFailures(limits.links)] };
}

const paramsSchema = z.object({ token: z.string() });

export function linkTokenOf(request: FastifyRequest): string {
  return paramsSchema.parse(request.params).token;
}

/** The page's form, empty or as it was sent. */
export function linkForm(request: FastifyRequest, errors: FormErrors = {}): LinkForm {
  const [path = ""] = request.url.split("?", 1);
  const fields = request.method === "POST" ? formOf(request) : {};
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
    const { values, errors } = readForm(formSchema, formOf(request));
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

/** The field is there where passwords are used, and only there. */
function passwordFieldOf({ passwordEnabled }: PageServices["signIn"]): z.ZodType<string | undefined> {
  return passwordEnabled ? passwordSchema : z.undefined().optional();
}

const resetForm = z.strictObject({
  /** Shown for password managers; whose password it is stands in the link. */
  email: z.string(),
  password: passwordSchema,
});

export function registerResetRoutes(app: HttpApp, { entry, limits }: PageServices): void {
  app.get("/reset/:token", secretPage(limits), async (request, reply) => {
    const { email } = await entry.requireReset(linkTokenOf(request));
    return sendPage(request, reply, resetPage({ ...linkForm(request), email }));
  });

  app.post("/reset/:token", secretPage(limits), async (request, reply) => {
    const token = linkTokenOf(request);
    const { email } = await entry.requireReset(token);
    const { values, errors } = readForm(resetForm, formOf(request));
    if (errors) return sendAgain(request, reply, resetPage({ ...linkForm(request, errors), email }));
    try {
      const done = await entry.reset({ token, password: values.password, caller: callerOf(request) });
      setCookies(reply, done.setCookies);
    } catch (error) {
      return sendAgain(request, reply, resetPage({ ...linkForm(request, fieldError(error)), email }));
    }
    return goTo(reply, accountAfter("reset"));
  });
}
