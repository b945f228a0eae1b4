import { DomainError } from "@fairlead/protocol/errors";
import type { IdSource } from "@fairlead/protocol/ids";
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
import type { Log } from "../log.ts";
import { type ErrorAnswer, errorAnswer, rawErrorAnswer, toDomainError } from "./error-response.ts";
import { fromClientError, fromFrameworkError } from "./framework-errors.ts";
import { refuseOtherMethods } from "./other-methods.ts";
import { isOurUpgrade } from "./upgrade-dispatcher.ts";
import { zodValidator } from "./validation.ts";

/** HTTP conventions of the platform host and the admin socket (design §4): everything about a request that is no resource's business. */

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
  /** Addresses and networks of proxies whose word for the client's address is taken. */
  readonly trustedProxies?: readonly string[];
  /** Adds every route, before the app is sealed. */
  readonly routes: (app: HttpApp) => void;
}

const MAX_BODY_BYTES = 1_048_576;
const MAX_PATH_PART = 256;
const REQUEST_TIMEOUT_MS = 30_000;

export function createHttpApp(options: HttpAppOptions): HttpApp {
  const app = createApp(options);
  app.setValidatorCompiler(zodValidator);
  // Response schemas serve types and the OpenAPI document; services answer parsed values, so nothing is filtered on the way out.
  app.setSerializerCompiler(() => (value) => JSON.stringify(value));
  acceptOnlyJson(app);
  app.addHook("onRequest", setStandardHeaders);
  app.addHook("onResponse", logAnswer);
  app.setErrorHandler(sendError);
  app.setNotFoundHandler(() => {
    throw new DomainError("not_found", "There is nothing at this path.");
  });
  const known = refuseOtherMethods(app);
  options.routes(app);
  // As a scope of its own it comes after those that `routes` made.
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
    // While closing, requests on open connections are still answered: the store closes after the hosts.
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
    // Clients that offer h2c on every request (Java's) must not end up at the upgrade dispatcher.
    http: { shouldUpgradeCallback: isOurUpgrade },
  }).withTypeProvider<ZodTypeProvider>();
}

function acceptOnlyJson(app: HttpApp): void {
  const parseJson = app.getDefaultJsonParser("error", "error");
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "string" }, (request, text, done) => {
    // Clients send the media type with an empty DELETE too; a route that needs a body says so itself.
    if (text === "") return done(null, undefined);
    return parseJson(request, text.toString(), done);
  });
}

async function setStandardHeaders(request: FastifyRequest, reply: FastifyReply): Promise<void> {
  void reply.headers({
    "x-request-id": request.id,
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
  });
  if (request.url.includes("%00")) throw new DomainError("invalid_request", "The path holds a NUL character.");
}

function sendError(thrown: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const { answer } = explainError(thrown, request);
  void reply.code(answer.status).headers(answer.headers).send(answer.body);
}

/** The one place where errors of this host are logged and put into words; pages render the same error for people. */
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
      // The pattern, never the path as sent: somebody may have put a credential there.
      route: request.routeOptions.url ?? "unknown",
      status: reply.statusCode,
      milliseconds: Math.round(reply.elapsedTime),
    },
    "answered",
  );
}
