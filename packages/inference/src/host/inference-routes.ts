import type { IncomingMessage } from "node:http";
import type { Dialect } from "@fairlead/dialects/calls/dialect";
import { DIALECT_SPECS } from "@fairlead/dialects/dialect-specs";
import { UNKNOWN_ROUTE } from "@fairlead/hosting/requests/request-tally";
import { DomainError } from "@fairlead/protocol/errors";
import { DIALECTS } from "@fairlead/protocol/providers";
import { authenticateCaller, mayCall, requireModel } from "../calls/caller.ts";
import type { InferenceCaller } from "../ports/inference-caller.ts";
import { type Exchange, sendEmpty, sendError, sendJson } from "./answer.ts";
import { type CallDependencies, httpCall } from "./http-call.ts";
import type { InferenceCors } from "./inference-cors.ts";

export interface RouteDependencies extends CallDependencies {
  /** Null: no web page may call this host. */
  readonly cors: InferenceCors | null;
}

type Handler = (deps: CallDependencies, request: IncomingMessage, exchange: Exchange) => Promise<void> | void;

interface Route {
  /** The pattern, for metrics. */
  readonly name: string;
  readonly methods: readonly string[];
  readonly handle: Handler;
}

const READ = ["GET", "HEAD"];
const MODELS_PREFIX = "/v1/models/";

const PLAIN_ROUTES: readonly Route[] = [
  ...DIALECTS.map(callRoute),
  { name: "/v1/models", methods: READ, handle: listModels },
  { name: "/healthz", methods: READ, handle: (_deps, _request, exchange) => sendJson(exchange, { status: "ok" }) },
  { name: "/readyz", methods: READ, handle: tellReady },
];
const ROUTES: ReadonlyMap<string, Route> = new Map(PLAIN_ROUTES.map((route) => [route.name, route]));

function callRoute(dialect: Dialect): Route {
  return {
    name: `/v1${DIALECT_SPECS[dialect].path}`,
    methods: ["POST"],
    handle: (deps, request, exchange) => httpCall(deps, dialect, { request, exchange }),
  };
}

/** Alive is not ready: a host that drains answers what runs, and wants no new calls. */
function tellReady({ admission }: CallDependencies, _request: IncomingMessage, exchange: Exchange): void {
  if (!admission.isReady) throw new DomainError("unavailable", "The server is stopping.", { retryAfterSeconds: 1 });
  sendJson(exchange, { status: "ready" });
}

const MODEL_ROUTE: Route = { name: "/v1/models/{model}", methods: READ, handle: getModel };

/** Routes of this host, such as `GET /v1/models`. */
export const INFERENCE_ROUTE_NAMES: readonly string[] = [...PLAIN_ROUTES, MODEL_ROUTE].flatMap(({ name, methods }) =>
  methods.filter((method) => method !== "HEAD").map((method) => `${method} ${name}`),
);

/** The pattern of the request's route, for metrics. */
export function routeName(request: IncomingMessage): string {
  return findRoute(pathOf(request))?.name ?? UNKNOWN_ROUTE;
}

/** Finds and runs the route. @throws DomainError of the route, `not_found`. */
export async function handleRoute(
  deps: RouteDependencies,
  request: IncomingMessage,
  exchange: Exchange,
): Promise<void> {
  const path = pathOf(request);
  const route = findRoute(path);
  if (route === undefined) {
    throw new DomainError("not_found", `Not found: ${request.method} ${path} does not exist on the inference host.`);
  }
  if (request.method === "OPTIONS" && deps.cors !== null) {
    sendEmpty(exchange, deps.cors.preflightHeaders(request, route.methods));
    return;
  }
  if (!route.methods.includes(request.method ?? "")) {
    const allow = route.methods.join(", ");
    const error = new DomainError("method_not_allowed", `${path} supports ${allow}, not ${request.method}.`);
    sendError(exchange, error, { allow });
    return;
  }
  await route.handle(deps, request, exchange);
}

function findRoute(path: string): Route | undefined {
  const isModel = path.length > MODELS_PREFIX.length && path.startsWith(MODELS_PREFIX);
  return ROUTES.get(path) ?? (isModel ? MODEL_ROUTE : undefined);
}

async function listModels(deps: CallDependencies, request: IncomingMessage, exchange: Exchange): Promise<void> {
  const caller = await authenticateCaller(deps.callers, request.headers);
  Object.assign(exchange.headers, await deps.limiter.headersFor(caller));
  const models = await deps.models.list(caller.projectId);
  const data = models.filter(({ id }) => mayCall(caller, id));
  sendJson(exchange, { object: "list", data, ...emptiedBy(caller, models.length, data.length) });
}

/** Reports an allow list that matches nothing, which would look like a project without models. */
function emptiedBy(
  caller: InferenceCaller,
  all: number,
  left: number,
): { readonly model_allow_list?: readonly string[] } {
  if (caller.kind === "member" || all === 0 || left > 0) return {};
  return { model_allow_list: caller.limits.modelAllowList ?? [] };
}

/** The id may contain slashes, plain or encoded: SDKs encode them. */
async function getModel(deps: CallDependencies, request: IncomingMessage, exchange: Exchange): Promise<void> {
  const caller = await authenticateCaller(deps.callers, request.headers);
  Object.assign(exchange.headers, await deps.limiter.headersFor(caller));
  const name = decode(pathOf(request).slice(MODELS_PREFIX.length));
  requireModel(caller, name);
  sendJson(exchange, await deps.models.entry(caller.projectId, name));
}

function pathOf(request: IncomingMessage): string {
  const url = request.url ?? "/";
  const query = url.indexOf("?");
  return query === -1 ? url : url.slice(0, query);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new DomainError("invalid_request", "The path has an invalid percent-encoding.");
  }
}
