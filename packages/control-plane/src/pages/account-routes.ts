import { DomainError } from "@fairlead/protocol/errors";
import { nameSchema } from "@fairlead/protocol/text";
import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { reference } from "../http/fields.ts";
import type { HttpApp } from "../http/http-app.ts";
import type { SignInSession } from "../users/user.ts";
import { type AccountPage, type AccountSession, accountPage } from "./account-page.ts";
import { callerOf, personOf } from "./callers.ts";
import { deviceName } from "./device-name.ts";
import { type FormErrors, fieldError, passwordSchema, readForm } from "./form-input.ts";
import type { Page } from "./layout.ts";
import type { PageServices } from "./page-deps.ts";
import { formOf, formTokenOf, goTo, requireVisitor, SIGNED_IN_PAGE, sendAgain, sendPage } from "./page-scope.ts";

const NOTICES = {
  name: "Your name was saved.",
  password: "Your password was changed. You are signed out everywhere else.",
  session: "That session was signed out.",
  welcome: "Welcome. You are signed in.",
  reset: "Your password was set. You are signed out everywhere else.",
  connected: "The provider is connected: you can sign in by it from now on.",
  disconnected: "The provider is disconnected.",
} as const;

/** Where a form of the account leads when it is done. */
export const accountAfter = (done: keyof typeof NOTICES): string => `/account?done=${done}`;

const querySchema = z.object({
  done: z
    .enum(Object.keys(NOTICES) as (keyof typeof NOTICES)[])
    .optional()
    .catch(undefined),
  /** A project that the person has just joined. */
  joined: z.string().max(64).optional().catch(undefined),
});
const nameForm = z.strictObject({ name: nameSchema });
const passwordForm = z.strictObject({ current: passwordSchema, next: passwordSchema });
const sessionForm = z.strictObject({ session: reference("A session of one's own.") });

export function registerAccountRoutes(app: HttpApp, services: PageServices): void {
  const { users, sessions } = services;

  app.get("/account", SIGNED_IN_PAGE, async (request, reply) => {
    const notice = await noticeFor(request, services);
    return sendPage(request, reply, await accountOf(request, services, { notice }));
  });

  app.post("/account/name", SIGNED_IN_PAGE, async (request, reply) => {
    const visitor = requireVisitor(request);
    const { values, errors } = readForm(nameForm, formOf(request));
    if (errors) {
      const more = { errors, typedName: formOf(request)["name"] };
      return sendAgain(request, reply, await accountOf(request, services, more));
    }
    await users.rename({ userId: visitor.userId, name: values.name, actor: personOf(request, visitor) });
    return goTo(reply, accountAfter("name"));
  });

  app.post("/account/password", SIGNED_IN_PAGE, async (request, reply) => {
    const { values, errors } = readForm(passwordForm, formOf(request));
    const wrong = errors ?? (await changePassword(request, services, values));
    if (wrong) return sendAgain(request, reply, await accountOf(request, services, { errors: wrong }));
    return goTo(reply, accountAfter("password"));
  });

  app.post("/account/sessions", SIGNED_IN_PAGE, async (request, reply) => {
    const visitor = requireVisitor(request);
    const { values } = readForm(sessionForm, formOf(request));
    if (values === null) throw new DomainError("not_found", "There is no such session among yours.");
    const actor = personOf(request, visitor);
    await sessions.revoke({ userId: visitor.userId, sessionId: values.session, actor });
    return goTo(reply, accountAfter("session"));
  });
}

async function accountOf(request: FastifyRequest, services: PageServices, more: Partial<AccountPage>): Promise<Page> {
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

/** @returns what is wrong with it, or null when it is done. */
async function changePassword(
  request: FastifyRequest,
  { users, signIn, limits }: PageServices,
  values: z.output<typeof passwordForm>,
): Promise<FormErrors | null> {
  const visitor = requireVisitor(request);
  const { origin } = callerOf(request);
  const { email } = await users.get(visitor.userId);
  // Whoever finds a browser open could guess the password here, so it counts like signing in.
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
    return `You are a member of the project ${name} now.`;
  } catch (error) {
    if (error instanceof DomainError && error.code === "not_found") return undefined;
    throw error;
  }
}
