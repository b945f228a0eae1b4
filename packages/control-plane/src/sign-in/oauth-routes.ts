import type { FastifyReply, FastifyRequest, FastifySchema } from "fastify";
import { z } from "zod";
import type { CallOrigin } from "../auth/principal.ts";
import { clientAddress } from "../http/client-address.ts";
import { explainError, type HttpApp } from "../http/http-app.ts";
import type { RateLimit } from "../http/rate-limit.ts";
import { limitCalls } from "../http/rate-limit-guards.ts";
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
  readonly publicUrl: string;
}

const tags = ["OAuth"];
const FORM = "application/x-www-form-urlencoded";
const MAX_FORM_BYTES = 32_768;

const authorize = {
  summary: "Ask a person for access",
  description:
    "For a browser: authorization code with PKCE (RFC 6749, RFC 7636). Sends the person to sign in and to consent, and then back " +
    "to the program. The one route of `/v1` that reads a cookie: it shows nothing and changes nothing.",
  operationId: "oauthAuthorize",
  tags,
  oauthErrors: true,
  querystring: authorizationQuery,
  response: { 302: z.null() },
} satisfies FastifySchema;

const requestDevice = {
  summary: "Ask for access by a code",
  description: "Device authorization (RFC 8628): the person enters the code in a browser anywhere.",
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
    "The access token is a session token, good for ten minutes. A refresh token is good for one exchange: a second one ends the " +
    "whole sign-in, since then two have had it.",
  operationId: "oauthToken",
  tags,
  oauthErrors: true,
  consumes: [FORM],
  body: tokenForm,
  response: { 200: tokenAnswer },
} satisfies FastifySchema;

const revoke = {
  summary: "Sign a program out",
  description:
    "RFC 7009. Ends the program's sign-in with all of its tokens; a token that is void already is no mistake.",
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

/** The OAuth server for programs. Its errors have the form of RFC 6749 §5.2, which its clients know how to read (decision 0010). */
export function registerOAuthRoutes(app: HttpApp, services: OAuthRouteServices): void {
  registerMetadataRoutes(app, services.publicUrl);
  void app.register(async (scope: HttpApp) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser(
      FORM,
      { parseAs: "string", bodyLimit: MAX_FORM_BYTES },
      async (_request: FastifyRequest, text: string | Buffer) => parseParameters(text.toString()),
    );
    scope.setErrorHandler(sendOAuthError);
    registerEndpoints(scope, services);
  });
}

function registerEndpoints(scope: HttpApp, { oauth, oauthTokens, limit }: OAuthRouteServices): void {
  const onRequest = limitCalls(limit);

  scope.get(OAUTH_PATHS.authorize, { onRequest, schema: authorize }, async (request, reply) =>
    reply.redirect(await oauth.authorize(request.query, request.headers.cookie), 302),
  );

  scope.post(OAUTH_PATHS.deviceCode, { onRequest, schema: requestDevice }, async (request) =>
    oauth.requestDevice(request.body),
  );

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
      metadata("getOAuthMetadata", "The OAuth server's endpoints (RFC 8414)"),
    ],
    [
      "/.well-known/openid-configuration",
      metadata("getOpenIdConfiguration", "The same, where OIDC clients look for it"),
    ],
  ] as const;
  for (const [path, schema] of routes) {
    app.get(path, { schema }, async (_request, reply) => {
      void reply.header("cache-control", "public, max-age=60");
      return document;
    });
  }
}

function originOf(request: FastifyRequest): CallOrigin {
  return { requestId: request.id, address: clientAddress(request) };
}

function sendOAuthError(thrown: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const cause = thrown instanceof OAuthRefusal ? thrown : null;
  if (cause) {
    void reply.code(400).send({ error: cause.code, error_description: cause.message });
    return;
  }
  const { error, answer } = explainError(thrown, request);
  const headers = { ...answer.headers, "content-type": "application/json; charset=utf-8" };
  const body = { error: codeFor(answer.status), error_description: error.message };
  void reply.code(answer.status).headers(headers).send(JSON.stringify(body));
}

/** RFC 6749 has no word for a limit; clients that see this one wait and come again. */
function codeFor(status: number): string {
  if (status === 429 || status === 503) return "temporarily_unavailable";
  return status >= 500 ? "server_error" : "invalid_request";
}
