import { errorAnswer } from "@fairlead/hosting/errors/error-response";
import { publicPath } from "@fairlead/hosting/public-url";
import { DomainError } from "@fairlead/protocol/errors";
import type { FastifyReply, FastifyRequest, FastifySchema } from "fastify";
import { z } from "zod";
import type { CallOrigin } from "../../../access/auth/principal.ts";
import { sendErrorPage } from "../../../http/errors/error-pages.ts";
import { explainError, type HttpApp } from "../../../http/http-app.ts";
import { clientAddress } from "../../../http/limits/client-address.ts";
import type { RateLimit } from "../../../http/limits/rate-limit.ts";
import { limitCalls } from "../../../http/limits/rate-limit-guards.ts";
import { bodyParser } from "../../../http/requests/body-parser.ts";
import { OAUTH_PATHS, OAuthRefusal, oauthMetadata } from "./oauth.ts";
import {
  authorizationQuery,
  deviceForm,
  parseParameters,
  readTokenRequest,
  revocationForm,
  tokenForm,
} from "./oauth-forms.ts";
import type { OAuthService } from "./oauth-service.ts";
import { type OAuthTokenService, tokenAnswer } from "./oauth-token-service.ts";

export interface OAuthRouteServices {
  readonly oauth: OAuthService;
  readonly oauthTokens: OAuthTokenService;
  readonly limit: RateLimit;
  readonly deviceCodes: RateLimit;
  readonly publicUrl: string;
}

const tags = ["OAuth"];
const FORM = "application/x-www-form-urlencoded";
const MAX_FORM_BYTES = 32_768;

const authorize = {
  summary: "Authorize a program in the browser",
  description:
    "For browsers: authorization code with PKCE (RFC 6749, RFC 7636). Asks the user to sign in and to consent, then redirects " +
    "to the program. The only route of `/v1` that reads a cookie; it shows and changes nothing.",
  operationId: "oauthAuthorize",
  tags,
  oauthErrors: true,
  querystring: authorizationQuery,
  response: { 302: z.null() },
} satisfies FastifySchema;

const requestDevice = {
  summary: "Authorize a device",
  description: "Device authorization (RFC 8628): the user enters the code in any browser.",
  operationId: "oauthDeviceCode",
  tags,
  oauthErrors: true,
  consumes: [FORM],
  body: deviceForm,
  response: {
    200: z.object({
      device_code: z.string(),
      user_code: z.string(),
      verification_uri: z.string(),
      verification_uri_complete: z.string(),
      expires_in: z.number().int(),
      interval: z.number().int(),
    }),
  },
} satisfies FastifySchema;

const exchange = {
  summary: "Get or renew an access token",
  description:
    "The access token is a session token and is valid for ten minutes. A refresh token can be used once. If it is used again, the " +
    "session ends, because the token may have been stolen.",
  operationId: "oauthToken",
  tags,
  oauthErrors: true,
  consumes: [FORM],
  body: tokenForm,
  response: { 200: tokenAnswer },
} satisfies FastifySchema;

const revoke = {
  summary: "Revoke a token",
  description:
    "RFC 7009. Ends the program's session and revokes all of its tokens. Revoking an invalid token is not an error.",
  operationId: "oauthRevoke",
  tags,
  oauthErrors: true,
  consumes: [FORM],
  body: revocationForm,
  response: { 200: z.object({}) },
} satisfies FastifySchema;

const metadata = (operationId: string, summary: string): FastifySchema & { response: { 200: z.ZodType } } => ({
  summary,
  operationId,
  tags,
  response: { 200: z.record(z.string(), z.unknown()) },
});

/** The OAuth server. Errors have the form of RFC 6749 §5.2 (decision 0010). */
export function registerOAuthRoutes(app: HttpApp, services: OAuthRouteServices): void {
  registerMetadataRoutes(app, services.publicUrl);
  void app.register(async (scope: HttpApp) => {
    scope.removeAllContentTypeParsers();
    const parse = (_request: FastifyRequest, body: Buffer) => parseParameters(body.toString());
    scope.addContentTypeParser(FORM, bodyParser(MAX_FORM_BYTES, parse));
    scope.setErrorHandler(sendOAuthError);
    registerEndpoints(scope, services);
  });
}

function registerEndpoints(scope: HttpApp, services: OAuthRouteServices): void {
  const { oauth, oauthTokens, limit, deviceCodes, publicUrl } = services;
  const onRequest = limitCalls(limit);

  scope.get(OAUTH_PATHS.authorize, { onRequest, schema: authorize }, async (request, reply) => {
    const location = await oauth.authorize(request.query, request.headers.cookie);
    return reply.redirect(location.startsWith("/") ? publicPath(publicUrl) + location : location, 302);
  });

  const forCodes = [onRequest, limitCalls(deviceCodes)];
  scope.post(OAUTH_PATHS.deviceCode, { onRequest: forCodes, schema: requestDevice }, async (request) => {
    const { address } = originOf(request);
    return oauth.requestDevice(request.body, { address, userAgent: request.headers["user-agent"] });
  });

  scope.post(OAUTH_PATHS.token, { onRequest, schema: exchange }, async (request) =>
    oauthTokens.exchange(readTokenRequest(request.body), originOf(request)),
  );

  scope.post(OAUTH_PATHS.revoke, { onRequest, schema: revoke }, async (request) => {
    await oauthTokens.revoke(request.body, originOf(request));
    return {};
  });
}

function registerMetadataRoutes(app: HttpApp, publicUrl: string): void {
  const document = oauthMetadata(publicUrl);
  const routes = [
    [
      "/.well-known/oauth-authorization-server",
      metadata("getOAuthMetadata", "Get the OAuth server metadata (RFC 8414)"),
    ],
    [
      "/.well-known/openid-configuration",
      metadata("getOpenIdConfiguration", "Get the OAuth server metadata (OpenID Connect path)"),
    ],
  ] as const;
  const send = async (_request: FastifyRequest, reply: FastifyReply): Promise<typeof document> => {
    void reply.header("cache-control", "public, max-age=60");
    return document;
  };
  for (const [path, schema] of routes) app.get(path, { schema }, send);
  // The RFC 8414 (§3.1) location for an issuer with a path; the reverse proxy forwards it unchanged.
  const below = publicPath(publicUrl);
  if (below !== "") app.get(`${routes[0][0]}${below}`, { schema: { hide: true } }, send);
}

function originOf(request: FastifyRequest): CallOrigin {
  return { requestId: request.id, address: clientAddress(request) };
}

function sendOAuthError(thrown: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const cause = thrown instanceof OAuthRefusal ? thrown : null;
  if (cause) {
    const error = new DomainError("invalid_request", `${BAD_REQUEST} ${cause.message} (${cause.code})`);
    if (sendErrorPage(request, reply, { error, answer: errorAnswer(error, request.id) })) return;
    void reply.code(400).send({ error: cause.code, error_description: cause.message });
    return;
  }
  const { error, answer } = explainError(thrown, request);
  if (sendErrorPage(request, reply, { error, answer })) return;
  const headers = { ...answer.headers, "content-type": "application/json; charset=utf-8" };
  const body = { error: codeFor(answer.status), error_description: error.message };
  void reply.code(answer.status).headers(headers).send(JSON.stringify(body));
}

/** For the user that a program sent here. */
const BAD_REQUEST = "The program that sent you here made an invalid request. Report this to its developer:";

/** RFC 6749 has no code for a rate limit; clients wait and retry on this one. */
function codeFor(status: number): string {
  if (status === 429 || status === 503) return "temporarily_unavailable";
  return status >= 500 ? "server_error" : "invalid_request";
}
