import type { Authenticate } from "../auth/authenticate.ts";
import { type ApiDocumentOptions, registerApiDocument, registerApiDocumentRoute } from "./api-document.ts";
import { type HealthOptions, registerHealthRoutes } from "./health-routes.ts";
import { createHttpApp, type HttpApp, type HttpAppOptions } from "./http-app.ts";
import { printedRoute, type RequestTally } from "./request-tally.ts";

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
      app.decorateRequest("principal", null);
      app.decorate("authenticate", options.authenticate);
      registerApiDocument(app, options.document);
      // Loaded after the document's part, which could not see routes that were there before it.
      void app.register(async (scope: PlatformApp) => {
        registerApiDocumentRoute(scope);
        registerHealthRoutes(scope, options.health);
        options.routes(scope);
      });
    },
  });
}
