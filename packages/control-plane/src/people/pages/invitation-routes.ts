import { DomainError } from "@fairlead/protocol/errors";
import { nameSchema } from "@fairlead/protocol/values/text";
import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { HttpApp } from "../../http/http-app.ts";
import { maskedEmail } from "../one-time-links/one-time-link.ts";
import { callerOf } from "./html/callers.ts";
import { type FormErrors, fieldError, passwordSchema, readForm } from "./html/form-input.ts";
import type { HtmlPage } from "./html/layout.ts";
import type { PageServices } from "./html/page-deps.ts";
import { formFieldsOf, goTo, sendAgain, sendPage, setCookies, visitorOf } from "./html/page-scope.ts";
import { type InvitationView, invitationPage, joinPage, otherPersonPage } from "./link-pages.ts";
import { linkForm, linkTokenOf, secretPage } from "./link-routes.ts";

const newPersonForm = z.strictObject({
  /** Shown to users and password managers; the invitation's address is used. */
  email: z.string(),
  name: nameSchema,
  password: passwordSchema,
});

type Invited = InvitationView & { readonly projectId: string };

/** Invitation pages: a signed-in user joins with a click, others create an account with the invited address. */
export function registerInvitationPages(app: HttpApp, services: PageServices): void {
  const { limits, users, signIn } = services;

  app.get("/invitations/:token", secretPage(limits), async (request, reply) => {
    const before = await projectJoinedBefore(request, services);
    if (before !== null) return goTo(reply, joined(before));
    const invitation = await invitationOf(request, services);
    const visitor = visitorOf(request);
    if (!visitor) return sendPage(request, reply, pageForStranger(request, services, { invitation }));
    const { email } = await users.get(visitor.userId);
    if (email === invitation.email) return sendPage(request, reply, joinPage({ ...linkForm(request), invitation }));
    return sendPage(request, reply, pageForOther(request, { email, invitation }));
  });

  app.post("/invitations/:token", secretPage(limits), async (request, reply) => {
    const before = await projectJoinedBefore(request, services);
    if (before !== null) return goTo(reply, joined(before));
    const invitation = await invitationOf(request, services);
    const visitor = visitorOf(request);
    if (visitor) return join(request, reply, { services, userId: visitor.userId });
    if (!signIn.passwordEnabled) throw new DomainError("permission_denied", "Sign in first, then join.");
    const { values, errors } = readForm(newPersonForm, formFieldsOf(request));
    if (errors) return sendAgain(request, reply, pageForStranger(request, services, { invitation, errors }));
    const person = { token: linkTokenOf(request), name: values.name, password: values.password };
    try {
      const { session, ...done } = await services.entry.createInvited({ ...person, caller: callerOf(request) });
      setCookies(reply, done.setCookies);
      return await join(request, reply, { services, userId: session.userId });
    } catch (error) {
      const wrong = isTaken(error) ? { failure: HAS_ACCOUNT } : { errors: fieldError(error) };
      return sendAgain(request, reply, pageForStranger(request, services, { invitation, ...wrong }));
    }
  });
}

const HAS_ACCOUNT = "There is already an account with this address. Sign in to join.";

async function projectJoinedBefore(request: FastifyRequest, { entry }: PageServices): Promise<string | null> {
  const visitor = visitorOf(request);
  return visitor && entry.projectJoinedBy(linkTokenOf(request), visitor.userId);
}

async function invitationOf(request: FastifyRequest, { entry, projects }: PageServices): Promise<Invited> {
  const { email, role, projectId } = await entry.requireInvitation(linkTokenOf(request));
  return { email, role, projectId, projectName: await projects.nameOf(projectId) };
}

async function join(
  request: FastifyRequest,
  reply: FastifyReply,
  { services, userId }: { readonly services: PageServices; readonly userId: string },
): Promise<FastifyReply> {
  const { invitations, users } = services;
  const { email } = await users.get(userId);
  const user = { userId, email };
  const { projectId } = await invitations.acceptInvitation(user, linkTokenOf(request), callerOf(request).origin);
  return goTo(reply, joined(projectId));
}

const joined = (projectId: string): string => `/account?${new URLSearchParams({ joined: projectId }).toString()}`;

function pageForStranger(
  request: FastifyRequest,
  { signIn, oidc }: PageServices,
  page: { readonly invitation: InvitationView; readonly errors?: FormErrors; readonly failure?: string },
): HtmlPage {
  const { invitation, errors, failure } = page;
  const ways = { providers: oidc.providers(), password: signIn.passwordEnabled };
  return invitationPage({ ...linkForm(request, errors), failure, invitation, ...ways });
}

function pageForOther(
  request: FastifyRequest,
  { email, invitation }: { readonly email: string; readonly invitation: InvitationView },
): HtmlPage {
  const { path, token } = linkForm(request);
  return otherPersonPage({ path, token, signedInAs: email, invitedAs: maskedEmail(invitation.email) });
}

function isTaken(error: unknown): boolean {
  return error instanceof DomainError && error.code === "already_exists";
}
