import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { daemonRouter } from "../../packages/control-plane/src/fleet/link/daemon-router.ts";
import type { HttpApp } from "../../packages/control-plane/src/http/http-app.ts";
import { printedRoute } from "../../packages/hosting/src/requests/request-tally.ts";
import { INFERENCE_ROUTE_NAMES } from "../../packages/inference/src/host/inference-routes.ts";

/** What the apps themselves say that they serve: `GET /v1/nodes/{id}`. */
export interface ServedRoutes {
  readonly platform: readonly string[];
  readonly inference: readonly string[];
  /** Procedures of the daemon link. */
  readonly link: readonly string[];
}

const CREATED = "fastify.initialization";
/** Fastify adds the first, and our own 405 answers stand at the others. */
const NOT_WALKED = new Set(["HEAD", "OPTIONS"]);

/** Assets are served under names that hold their hash. */
function nameOf(url: string): string {
  return printedRoute(url).replace(/^\/assets\/.*/, "/assets/{file}");
}

/** Listens while `start` brings the hosts up, pages and all. */
export async function recordRoutes<T>(start: () => Promise<T>): Promise<{ started: T; routes: ServedRoutes }> {
  const apps: Set<string>[] = [];
  const onCreated = (message: unknown): void => {
    const routes = new Set<string>();
    apps.push(routes);
    const { fastify } = message as { fastify: HttpApp };
    fastify.addHook("onRoute", ({ method, url, schema }) => {
      // A list of methods that no document tells of is what a path's 405 answers are registered with.
      if (Array.isArray(method) && schema?.hide === true) return;
      for (const name of [method].flat()) if (!NOT_WALKED.has(name)) routes.add(`${name} ${nameOf(url)}`);
    });
  };
  subscribe(CREATED, onCreated);
  try {
    const started = await start();
    const platform = apps.find((routes) => routes.has("GET /openapi.json"));
    if (!platform) throw new Error("no app serves the API document");
    const link = Object.keys(daemonRouter._def.procedures);
    return { started, routes: { platform: [...platform], inference: INFERENCE_ROUTE_NAMES, link } };
  } finally {
    unsubscribe(CREATED, onCreated);
  }
}
