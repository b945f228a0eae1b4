import { DomainError } from "@fairlead/protocol/errors";
import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { HttpApp } from "../../http/http-app.ts";
import { limitFailures } from "../../http/limits/rate-limit-guards.ts";
import { localPath, oidcCallbackPath, RETURN_TO, SIGN_IN_PAGE } from "../sign-in/sign-in.ts";
import type { SignInSession } from "../users/user.ts";
import { accountAfter } from "./account-routes.ts";
import { callerOf } from "./html/callers.ts";
import { readForm } from "./html/form-input.ts";
import type { PageServices } from "./html/page-deps.ts";
import { formFieldsOf, goTo, PAGE, requireVisitor, SIGNED_IN_PAGE, sendPage, setCookies } from "./html/page-scope.ts";
import { onwardPage } from "./html/plain-pages.ts";

const paramsSchema = z.object({ provider: z.string() });
const beginForm = z.strictObject({ [RETURN_TO]: z.string().max(4096).optional() });

/** Redirects to an OIDC provider and back, to sign in or to connect an account. */
export function registerProviderPages(app: HttpApp, services: PageServices): void {
  const { oidc, limits, publicUrl } = services;
  const limited = { ...PAGE, onRequest: limitFailures(limits.links) };

  app.post(`${SIGN_IN_PAGE}/:provider`, limited, async (request, reply) => {
    const { values } = readForm(beginForm, formFieldsOf(request));
    const returnTo = localPath(values?.[RETURN_TO], publicUrl) ?? "/account";
    return leave(request, reply, { services, returnTo, linkTo: null });
  });

  app.post("/account/providers/:provider", SIGNED_IN_PAGE, async (request, reply) =>
    leave(request, reply, { services, returnTo: accountAfter("connected"), linkTo: requireVisitor(request) }),
  );

  app.post("/account/providers/:provider/disconnect", SIGNED_IN_PAGE, async (request, reply) => {
    const { userId } = requireVisitor(request);
    await oidc.unlink({ userId, providerId: providerOf(request), origin: callerOf(request).origin });
    return goTo(reply, accountAfter("disconnected"));
  });

  app.get(oidcCallbackPath(":provider"), limited, async (request, reply) => {
    const done = await oidc.complete({
      providerId: providerOf(request),
      query: new URL(request.url, publicUrl).searchParams,
      cookies: request.headers.cookie,
      caller: callerOf(request),
    });
    setCookies(reply, done.setCookies);
    return goTo(reply, done.returnTo);
  });
}

async function leave(
  request: FastifyRequest,
  reply: FastifyReply,
  input: { readonly services: PageServices; readonly returnTo: string; readonly linkTo: SignInSession | null },
): Promise<FastifyReply> {
  const { services, ...way } = input;
  const { oidc } = services;
  const providerId = providerOf(request);
  const provider = oidc.providers().find(({ id }) => id === providerId);
  if (!provider) throw new DomainError("not_found", "This sign-in provider does not exist.");
  const { location, setCookies: cookies } = await oidc.begin({ providerId, ...way });
  setCookies(reply, cookies);
  return sendPage(request, reply, onwardPage(location, provider.name));
}

function providerOf(request: FastifyRequest): string {
  return paramsSchema.parse(request.params).provider;
}
