import { type ErrorAnswer, errorAnswer, rawErrorAnswer, toDomainError } from "@fairlead/hosting/errors/error-response";
import { headFault } from "@fairlead/hosting/requests/request-head";
import { DomainError, type ErrorCode } from "@fairlead/protocol/errors";
import type { IdSource } from "@fairlead/protocol/values/ids";
import { checkJson, JsonLimitError } from "@fairlead/protocol/values/parse-json";
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
  type RawReplyDefaultExpression,
  type RawRequestDefaultExpression,
  type RawServerDefault,
} from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import type { Log } from "../installation/process/log.ts";
import { type ErrorPages, sendErrorPage } from "./errors/error-pages.ts";
import { admitBody, type BodyRoom, bodyParser, bodyRoom } from "./requests/body-parser.ts";
import { zodValidator } from "./requests/validation.ts";
import { isOurUpgrade } from "./upgrades/upgrade-dispatcher.ts";

/** Fastify's errors in our words. Others are internal errors, or reported by status only. */
const FRAMEWORK_ERRORS: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  FST_ERR_BAD_URL: ["invalid_request", "The path is not a valid URL path; check its percent-encoding"],
  FST_ERR_MAX_PARAM_LENGTH: ["not_found", "A part of the path is too long"],
  FST_ERR_CTP_BODY_TOO_LARGE: ["request_too_large", "The body is larger than this host accepts"],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ["unsupported_media_type", "Send the body as `content-type: application/json`"],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ["invalid_request", "The length of the body does not match `content-length`"],
  FST_ERR_CTP_EMPTY_JSON_BODY: ["malformed_json", "The body is empty; send a JSON object"],
  FST_ERR_CTP_INVALID_JSON_BODY: ["malformed_json", "The body is not valid JSON"],
};

/** @returns null unless the framework rejected the request. */
function fromFrameworkError(error: unknown): DomainError | null {
  if (!(error instanceof Error) || error instanceof DomainError) return null;
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  const known = FRAMEWORK_ERRORS[code];
  if (known) return new DomainError(known[0], `${known[1]}.`, { cause: error });
  const status = "statusCode" in error && typeof error.statusCode === "number" ? error.statusCode : 500;
  if (status < 400 || status >= 500) return null;
  return new DomainError("invalid_request", "The request could not be read.", { cause: error, note: error.message });
}

/** Errors of Node's HTTP parser, before there is a request: the code and the reason phrase. */
function fromClientError(error: Error & { readonly code?: string }): { error: DomainError; reason: string } {
  if (error.code === "HPE_HEADER_OVERFLOW") {
    const message = "The request headers exceed the size limit of this host.";
    return { error: new DomainError("headers_too_large", message), reason: "Request Header Fields Too Large" };
  }
  if (error.code === "ERR_HTTP_REQUEST_TIMEOUT") {
    return {
      error: new DomainError("request_timeout", "The request took too long to arrive."),
      reason: "Request Timeout",
    };
  }
  return { error: new DomainError("invalid_request", "This is not a valid HTTP request."), reason: "Bad Request" };
}

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const;

/**
 * Returns 405 with `Allow` for unsupported methods of existing paths, for which Fastify returns 404.
 * Call before the first route; `seal` after the last.
 */
function refuseOtherMethods(app: HttpApp): { seal(app: HttpApp): void } {
  const methodsByPath = new Map<string, Set<string>>();
  app.addHook("onRoute", (route) => {
    const methods = methodsByPath.get(route.url) ?? new Set();
    for (const method of [route.method].flat()) methods.add(method);
    methodsByPath.set(route.url, methods);
  });
  return {
    seal: (last) => {
      for (const [url, methods] of methodsByPath) refuseOthers(last, url, new Set(methods));
    },
  };
}

function refuseOthers(app: HttpApp, url: string, allowed: ReadonlySet<string>): void {
  const refused = METHODS.filter((method) => !allowed.has(method));
  if (refused.length === 0) return;
  const allow = [...allowed].toSorted().join(", ");
  app.route({
    method: refused,
    url,
    schema: { hide: true },
    handler: async (request, reply) => {
      void reply.header("allow", allow);
      throw new DomainError("method_not_allowed", `${request.method} is not supported here. Allowed: ${allow}.`);
    },
  });
}

/** HTTP conventions of the platform host and the admin socket, independent of resources. */

export type HttpApp = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  ZodTypeProvider
>;

export interface HttpAppOptions {
  readonly ids: IdSource;
  readonly log: Log;
  /** Addresses and networks of trusted proxies. */
  readonly trustedProxies?: readonly string[];
  /** Default: a separate budget. */
  readonly bodies?: BodyRoom;
  /** Registers the routes, before the app is sealed. */
  readonly routes: (app: HttpApp) => void;
}

const MAX_BODY_BYTES = 1_048_576;
const MAX_PATH_PART = 256;
const REQUEST_TIMEOUT_MS = 30_000;
/** Interval for checking slow and idle connections. */
const CONNECTION_SWEEP_MS = 5000;

export function createHttpApp(options: HttpAppOptions): HttpApp {
  const app = createApp(options);
  app.setValidatorCompiler(zodValidator);
  // Response schemas serve types and the OpenAPI document; services return parsed values, so responses are not filtered.
  app.setSerializerCompiler(() => (value) => JSON.stringify(value));
  acceptOnlyJson(app);
  app.addHook("onRequest", setStandardHeaders);
  app.decorate("bodies", options.bodies ?? bodyRoom());
  app.decorateRequest("bodyTicket", null);
  app.decorate("errorPages", { render: null } satisfies ErrorPages);
  app.addHook("preParsing", admitBody);
  app.addHook("onResponse", logAnswer);
  app.setErrorHandler(sendError);
  app.setNotFoundHandler(() => {
    throw new DomainError("not_found", "Not found.");
  });
  const known = refuseOtherMethods(app);
  options.routes(app);
  // In its own scope, registered after the scopes of `routes`.
  void app.register(async (last: HttpApp) => known.seal(last));
  return app;
}

function createApp({ ids, log, trustedProxies = [] }: HttpAppOptions): HttpApp {
  return Fastify({
    loggerInstance: log as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: "requestId" }),
    trustProxy: trustedProxies.length > 0 ? [...trustedProxies] : false,
    requestIdHeader: false,
    genReqId: () => ids.next("request"),
    bodyLimit: MAX_BODY_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    routerOptions: { maxParamLength: MAX_PATH_PART },
    // During shutdown, requests on open connections are still served: the store closes after the hosts.
    return503OnClosing: false,
    frameworkErrors: (error, request, reply) => sendError(error, request, reply),
    clientErrorHandler: (error, socket) => {
      if (!socket.writable || ("bytesWritten" in socket && socket.bytesWritten > 0)) {
        socket.destroy();
        return;
      }
      const told = fromClientError(error);
      socket.end(rawErrorAnswer(errorAnswer(told.error, ids.next("request")), told.reason));
    },
    // Requests that offer h2c (Java clients) must not reach the upgrade dispatcher.
    http: { shouldUpgradeCallback: isOurUpgrade, connectionsCheckingInterval: CONNECTION_SWEEP_MS },
  }).withTypeProvider<ZodTypeProvider>();
}

function acceptOnlyJson(app: HttpApp): void {
  // Rejects keys that would change an object's prototype.
  const parse = app.getDefaultJsonParser("error", "error");
  app.removeAllContentTypeParsers();
  const readJson = (request: FastifyRequest, body: Buffer): Promise<unknown> | undefined => {
    // Some clients send the media type with an empty DELETE; routes that need a body check it.
    if (body.length === 0) return undefined;
    refuseExcess(body);
    return new Promise((resolve, reject) => {
      void parse(request, body.toString(), (error, value: unknown) =>
        error === null ? resolve(value) : reject(error),
      );
    });
  };
  app.addContentTypeParser("application/json", bodyParser(null, readJson));
}

/** @throws DomainError `malformed_json` */
function refuseExcess(body: Buffer): void {
  try {
    checkJson(body);
  } catch (cause) {
    if (!(cause instanceof JsonLimitError)) throw cause;
    throw new DomainError("malformed_json", cause.message, { cause });
  }
}

async function setStandardHeaders(request: FastifyRequest, reply: FastifyReply): Promise<void> {
  void reply.headers({
    "x-request-id": request.id,
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
  });
  const fault = headFault(request.raw);
  if (fault !== null) throw fault;
  if (request.url.includes("%00")) throw new DomainError("invalid_request", "The path contains a NUL character.");
}

function sendError(thrown: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const { error, answer } = explainError(thrown, request);
  if (sendErrorPage(request, reply, { error, answer })) return;
  void reply.code(answer.status).headers(answer.headers).send(answer.body);
}

/** The only place where errors of this host are logged and rendered, including for pages. */
export function explainError(thrown: unknown, request: FastifyRequest): { error: DomainError; answer: ErrorAnswer } {
  const error = fromFrameworkError(thrown) ?? toDomainError(thrown);
  const answer = errorAnswer(error, request.id);
  if (answer.status >= 500) request.log.error({ err: error, note: error.note }, "request failed");
  else if (error.note !== undefined) request.log.info({ code: error.code, note: error.note }, "request refused");
  return { error, answer };
}

async function logAnswer(request: FastifyRequest, reply: FastifyReply): Promise<void> {
  request.log.info(
    {
      method: request.method,
      // The route pattern, not the sent path, which might contain a credential.
      route: request.routeOptions.url ?? "unknown",
      status: reply.statusCode,
      milliseconds: Math.round(reply.elapsedTime),
    },
    "answered",
  );
}
