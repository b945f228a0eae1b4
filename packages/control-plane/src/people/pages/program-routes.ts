import { DomainError } from "@fairlead/protocol/errors";
import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { HttpApp } from "../../http/http-app.ts";
import { clientAddress, networkOf } from "../../http/limits/client-address.ts";
import { limitFailures } from "../../http/limits/rate-limit-guards.ts";
import { shownUserCode } from "../sign-in/oauth/oauth.ts";
import { CONSENT_PAGE, DEVICE_PAGE } from "../sign-in/sign-in.ts";
import { deviceName } from "./device-name.ts";
import { callerOf } from "./html/callers.ts";
import { readForm } from "./html/form-input.ts";
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
import { messagePage, onwardPage } from "./html/plain-pages.ts";
import { deviceCodePage, programPage } from "./program-pages.ts";

const decision = z.enum(["allow", "refuse"]);
/** As users type it: in any case, with or without the dash. */
const userCode = z
  .string()
  .max(64, "is too long")
  .transform((text) => text.toUpperCase().replaceAll(/[^A-Z0-9]/g, ""))
  .transform((letters) => (letters === "" ? "" : shownUserCode(letters)));
const deviceQuery = z.object({
  user_code: userCode.optional().catch(undefined),
  done: decision.optional().catch(undefined),
});
const codeForm = z.strictObject({ user_code: userCode });
const deviceForm = z.strictObject({ user_code: userCode, decision, started: z.literal("yes").optional() });
const consentForm = z.strictObject({ query: z.string().max(8192), decision });

const DONE = {
  allow: messagePage("The program is connected", "You can close this page and return to your device."),
  refuse: messagePage("Access denied", "The program has been informed. You can close this page."),
} as const;

/** RFC 8628: a program on another machine shows a code, which the user enters here. */
export function registerDeviceRoutes(app: HttpApp, services: PageServices): void {
  const { oauth, limits } = services;
  const ofUser = (request: FastifyRequest): string => requireVisitor(request).userId;
  const guards = [limitFailures(limits.links), limitFailures(limits.deviceCodeTries, ofUser)];
  const page = { ...SIGNED_IN_PAGE, onRequest: [SIGNED_IN_PAGE.onRequest, ...guards] };

  app.get(DEVICE_PAGE, page, async (request, reply) => {
    const { user_code: code, done } = deviceQuery.parse(request.query);
    if (done !== undefined) return sendPage(request, reply, DONE[done]);
    if (code === undefined || code === "") return sendPage(request, reply, codePage(request));
    return askAboutDevice(request, reply, { services, code });
  });

  app.post(DEVICE_PAGE, page, async (request, reply) => {
    const { values, errors } = readForm(codeForm, formFieldsOf(request));
    if (errors) return sendAgain(request, reply, codePage(request, { code: "", error: errors["user_code"] }));
    return goTo(reply, `${DEVICE_PAGE}?${new URLSearchParams(values).toString()}`);
  });

  app.post(`${DEVICE_PAGE}/decision`, page, async (request, reply) => {
    const { values } = readForm(deviceForm, formFieldsOf(request));
    if (values === null) throw new DomainError("invalid_request", "Choose one of the two options.");
    const { origin } = callerOf(request);
    const approve = values.decision === "allow";
    if (approve && values.started === undefined) {
      return askAboutDevice(request, reply.code(422), { services, code: values.user_code, unconfirmed: true });
    }
    await oauth.decideDevice({ userCode: values.user_code, approve, cookies: request.headers.cookie, origin });
    return goTo(reply, `${DEVICE_PAGE}?done=${values.decision}`);
  });
}

function codePage(
  request: FastifyRequest,
  more: { code: string; error?: string | undefined } = { code: "" },
): HtmlPage {
  return deviceCodePage({ token: formTokenOf(request), ...more });
}

async function askAboutDevice(
  request: FastifyRequest,
  reply: FastifyReply,
  asked: { readonly services: PageServices; readonly code: string; readonly unconfirmed?: boolean },
): Promise<FastifyReply> {
  const { code, unconfirmed = false } = asked;
  const { oauth, users } = asked.services;
  try {
    const { client, scopes, from } = await oauth.describeDevice(code, request.headers.cookie);
    const { email } = await users.get(requireVisitor(request).userId);
    const shared = { token: formTokenOf(request), action: `${DEVICE_PAGE}/decision`, hidden: { user_code: code } };
    const sameNetwork = networkOf(from.address) === networkOf(clientAddress(request));
    const device = { code, ...from, userAgent: deviceName(from.userAgent), sameNetwork, unconfirmed };
    return sendPage(request, reply, programPage({ ...shared, client: client.name, scopes, email, device }));
  } catch (error) {
    if (!(error instanceof DomainError) || error.code !== "not_found") throw error;
    return sendPage(request, reply.code(404), codePage(request, { code, error: error.message }));
  }
}

/** The consent page of the authorization code flow. */
export function registerConsentRoutes(app: HttpApp, { oauth, users }: PageServices): void {
  app.get(CONSENT_PAGE, SIGNED_IN_PAGE, async (request, reply) => {
    const query = queryOf(request);
    const { client, scopes, redirectHost } = oauth.describeConsent(query);
    const { email } = await users.get(requireVisitor(request).userId);
    const shared = { token: formTokenOf(request), action: CONSENT_PAGE, hidden: { query }, destination: redirectHost };
    return sendPage(request, reply, programPage({ ...shared, client: client.name, scopes, email }));
  });

  app.post(CONSENT_PAGE, SIGNED_IN_PAGE, async (request, reply) => {
    const { values } = readForm(consentForm, formFieldsOf(request));
    if (values === null) throw new DomainError("invalid_request", "Choose one of the two options.");
    const { query } = values;
    const { client } = oauth.describeConsent(query);
    const answer = { query, accept: values.decision === "allow", cookies: request.headers.cookie };
    const url = await oauth.decideConsent({ ...answer, origin: callerOf(request).origin });
    return sendPage(request, reply, onwardPage(url, client.name));
  });
}

function queryOf({ url }: FastifyRequest): string {
  const at = url.indexOf("?");
  return at < 0 ? "" : url.slice(at + 1);
}
