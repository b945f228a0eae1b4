import { DomainError } from "@fairlead/protocol/errors";
import { nameSchema } from "@fairlead/protocol/values/text";
import type { FastifyRequest } from "fastify";
import { z } from "zod";
import type { HttpApp } from "../../http/http-app.ts";
import { reference } from "../../http/requests/fields.ts";
import type { SignInSession } from "../users/user.ts";
import { type AccountPage, type AccountSession, accountPage } from "./account-page.ts";
import { deviceName } from "./device-name.ts";
import { callerOf, personOf } from "./html/callers.ts";
import { type FormErrors, fieldError, passwordSchema, readForm } from "./html/form-input.ts";
import type { HtmlPage } from "./html/layout.ts";
import type { PageServices } from "./html/page-deps.ts";
import {
  formFieldsOf,
  formTokenOf,
  goTo,
  requireVisitor,
  SIGNED_IN_PAGE,
  sendAgain,
  sendPage,
} from "./html/page-scope.ts";

const NOTICES = {
  name: "Your name was saved.",
  password: "Your password was changed. You are signed out everywhere else.",
  session: "That session was signed out.",
  welcome: "Welcome. You are signed in.",
  reset: "Your password was set. You are signed out everywhere else.",
  password_set: "Your password was set.",
  connected: "The provider is connected. You can now sign in with it.",
  disconnected: "The provider is disconnected.",
} as const;

/** Redirect target after a form of the account page. */
export const accountAfter = (done: keyof typeof NOTICES): string => `/account?done=${done}`;

const querySchema = z.object({
  done: z
    .enum(Object.keys(NOTICES) as (keyof typeof NOTICES)[])
    .optional()
    .catch(undefined),
  /** A project that the user has just joined. */
  joined: z.string().max(64).optional().catch(undefined),
});
const nameForm = z.strictObject({ name: nameSchema });
const passwordForm = z.strictObject({ current: passwordSchema, next: passwordSchema });
const sessionForm = z.strictObject({ session: reference("One of your own sessions.") });

export function registerAccountRoutes(app: HttpApp, services: PageServices): void {
  const { users, sessions } = services;

  app.get("/account", SIGNED_IN_PAGE, async (request, reply) => {
    const notice = await noticeFor(request, services);
    return sendPage(request, reply, await accountOf(request, services, { notice }));
  });

  app.post("/account/name", SIGNED_IN_PAGE, async (request, reply) => {
    const visitor = requireVisitor(request);
    const { values, errors } = readForm(nameForm, formFieldsOf(request));
    if (errors) {
      const more = { errors, typedName: formFieldsOf(request)["name"] };
      return sendAgain(request, reply, await accountOf(request, services, more));
    }
    await users.rename({ userId: visitor.userId, name: values.name, actor: personOf(request, visitor) });
    return goTo(reply, accountAfter("name"));
  });

  app.post("/account/password", SIGNED_IN_PAGE, async (request, reply) => {
    const { values, errors } = readForm(passwordForm, formFieldsOf(request));
    const wrong = errors ?? (await changePassword(request, services, values));
    if (wrong) return sendAgain(request, reply, await accountOf(request, services, { errors: wrong }));
    return goTo(reply, accountAfter("password"));
  });

  app.post("/account/sessions", SIGNED_IN_PAGE, async (request, reply) => {
    const visitor = requireVisitor(request);
    const { values } = readForm(sessionForm, formFieldsOf(request));
    if (values === null) throw new DomainError("not_found", "You have no such session.");
    const actor = personOf(request, visitor);
    await sessions.revoke({ userId: visitor.userId, sessionId: values.session, actor });
    return goTo(reply, accountAfter("session"));
  });
}

async function accountOf(
  request: FastifyRequest,
  services: PageServices,
  more: Partial<AccountPage>,
): Promise<HtmlPage> {
  const { users, sessions, signIn, oidc } = services;
  const visitor = requireVisitor(request);
  const { email, name, platformAdmin } = await users.get(visitor.userId);
  const linked = new Set((await oidc.linkedAccounts(visitor.userId)).map(({ providerId }) => providerId));
  return accountPage({
    token: formTokenOf(request),
    email,
    name,
    platformAdmin,
    hasPassword: signIn.passwordEnabled && (await signIn.hasPassword(visitor.userId)),
    sessions: (await sessions.list(visitor.userId)).map((session) => toRow(session, visitor.id)),
    providers: oidc.providers().map((provider) => ({ ...provider, linked: linked.has(provider.id) })),
    ...more,
  });
}

function toRow(session: SignInSession, currentId: string): AccountSession {
  const { id, userAgent, address, createdAt } = session;
  return { id, device: deviceName(userAgent), address, signedInAt: createdAt, current: id === currentId };
}

/** @returns the error, or null on success. */
async function changePassword(
  request: FastifyRequest,
  { users, signIn, limits }: PageServices,
  values: z.output<typeof passwordForm>,
): Promise<FormErrors | null> {
  const visitor = requireVisitor(request);
  const { origin } = callerOf(request);
  const { email } = await users.get(visitor.userId);
  // Counts like a sign-in attempt, so that the password cannot be guessed in an open browser.
  const attempt = async (): Promise<void> => {
    try {
      await signIn.changePassword(visitor, { ...values, origin });
    } catch (error) {
      if (!(error instanceof DomainError) || error.param !== "current") throw error;
      throw new DomainError("invalid_credential", error.message, { param: "current" });
    }
  };
  try {
    await limits.signIn.attempt({ address: origin.address, account: email }, attempt);
    return null;
  } catch (error) {
    if (error instanceof DomainError && error.code === "invalid_credential") return { current: error.message };
    return fieldError(error, { password: "next" });
  }
}

async function noticeFor(request: FastifyRequest, { projects }: PageServices): Promise<string | undefined> {
  const { done, joined } = querySchema.parse(request.query);
  if (done !== undefined) return NOTICES[done];
  if (joined === undefined) return undefined;
  try {
    const { name } = await projects.get(personOf(request, requireVisitor(request)), joined);
    return `You are now a member of the project ${name}.`;
  } catch (error) {
    if (error instanceof DomainError && error.code === "not_found") return undefined;
    throw error;
  }
}
