import type { Authenticate } from "../auth/authenticate.ts";
import { type HealthOptions, registerHealthRoutes } from "./health-routes.ts";
import { createHttpApp, type HttpApp, type HttpAppOptions } from "./http-app.ts";

/** The typed app that resources add their routes to: `registerXxxRoutes(app, services)`. */
export type PlatformApp = HttpApp;

export interface PlatformHostOptions extends HttpAppOptions {
  readonly authenticate: Authenticate;
  readonly health: HealthOptions;
}

/** The platform host: the HTTP conventions, callers with principals, and health. */
export function createPlatformHost(options: PlatformHostOptions): PlatformApp {
  return createHttpApp({
    ...options,
    routes: (app) => {
      app.decorateRequest("principal", null);
      app.decorate("authenticate", options.authenticate);
      registerHealthRoutes(app, options.health);
      options.routes(app);
    },
  });
}
