import { printedRoute, type RequestTally } from "@fairlead/hosting/requests/request-tally";
import type { RouteOptions } from "fastify";
import type { Authenticate } from "../access/auth/authenticate.ts";
import { type ApiDocumentOptions, registerApiDocument, registerApiDocumentRoute } from "./api-document.ts";
import { type HealthOptions, registerHealthRoutes } from "./health-routes.ts";
import { createHttpApp, type HttpApp, type HttpAppOptions } from "./http-app.ts";
import { principalKindsOf } from "./requests/require-principal.ts";

/** The typed app that resources add their routes to: `registerXxxRoutes(app, services)`. */
export type PlatformApp = HttpApp;

export interface PlatformHostOptions extends HttpAppOptions {
  readonly authenticate: Authenticate;
  readonly health: HealthOptions;
  readonly document: ApiDocumentOptions;
  readonly requests: RequestTally;
}

/** The platform host: the HTTP conventions, callers with principals, the API document, and health. */
export function createPlatformHost(options: PlatformHostOptions): PlatformApp {
  return createHttpApp({
    ...options,
    routes: (app) => {
      app.addHook("onResponse", async (request, reply) => {
        const answered = { method: request.method, route: printedRoute(request.routeOptions.url) };
        options.requests.add({ ...answered, status: reply.statusCode }, reply.elapsedTime / 1000);
      });
      app.addHook("onRoute", limitAnonymousBody);
      app.decorateRequest("principal", null);
      app.decorate("authenticate", options.authenticate);
      registerApiDocument(app, options.document);
      // Registered after the API document's plugin, which only sees routes added later.
      void app.register(async (scope: PlatformApp) => {
        registerApiDocumentRoute(scope);
        registerHealthRoutes(scope, options.health);
        options.routes(scope);
      });
    },
  });
}

/** The largest body that is read without a credential. */
export const MAX_ANONYMOUS_BODY_BYTES = 65_536;

/** Routes without a credential check read small bodies only, whichever room adds them. */
function limitAnonymousBody(route: RouteOptions): void {
  if (principalKindsOf(route.onRequest).length > 0) return;
  route.bodyLimit = Math.min(route.bodyLimit ?? MAX_ANONYMOUS_BODY_BYTES, MAX_ANONYMOUS_BODY_BYTES);
}
