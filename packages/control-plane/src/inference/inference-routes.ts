import type { IncomingMessage } from "node:http";
import { DomainError } from "@fairlead/protocol/errors";
import { UNKNOWN_ROUTE } from "../http/request-tally.ts";
import { type Exchange, sendError, sendJson } from "./answer.ts";
import { authenticateCaller, mayCall, requireModel } from "./caller.ts";
import { type CallDependencies, httpCall } from "./http-call.ts";

type Handler = (deps: CallDependencies, request: IncomingMessage, exchange: Exchange) => Promise<void> | void;

interface Route {
  /** For metrics: the pattern. */
  readonly name: string;
  readonly methods: readonly string[];
  readonly handle: Handler;
}

const READ = ["GET", "HEAD"];
const MODELS_PREFIX = "/v1/models/";

const PLAIN_ROUTES: readonly Route[] = [
  {
    name: "/v1/chat/completions",
    methods: ["POST"],
    handle: (deps, request, exchange) => httpCall(deps, "chat", { request, exchange }),
  },
  {
    name: "/v1/responses",
    methods: ["POST"],
    handle: (deps, request, exchange) => httpCall(deps, "responses", { request, exchange }),
  },
  { name: "/v1/models", methods: READ, handle: listModels },
  { name: "/healthz", methods: READ, handle: (_deps, _request, exchange) => sendJson(exchange, { status: "ok" }) },
  { name: "/readyz", methods: READ, handle: tellReady },
];
const ROUTES: ReadonlyMap<string, Route> = new Map(PLAIN_ROUTES.map((route) => [route.name, route]));

/** Alive is not ready: a host that drains answers what runs, and wants no new calls. */
function tellReady({ admission }: CallDependencies, _request: IncomingMessage, exchange: Exchange): void {
  if (admission.stopped) throw new DomainError("unavailable", "The server is stopping.", { retryAfterSeconds: 1 });
  sendJson(exchange, { status: "ready" });
}

const MODEL_ROUTE: Route = { name: "/v1/models/{model}", methods: READ, handle: getModel };

/** Every route of this host: `GET /v1/models`. */
export const INFERENCE_ROUTE_NAMES: readonly string[] = [...PLAIN_ROUTES, MODEL_ROUTE].flatMap(({ name, methods }) =>
  methods.filter((method) => method !== "HEAD").map((method) => `${method} ${name}`),
);

/** The pattern of the request's route, for metrics. */
export function routeName(request: IncomingMessage): string {
  return findRoute(pathOf(request))?.name ?? UNKNOWN_ROUTE;
}

/** Finds and runs the route. @throws DomainError of the route, `not_found`. */
export async function handleRoute(deps: CallDependencies, request: IncomingMessage, exchange: Exchange): Promise<void> {
  const path = pathOf(request);
  const route = findRoute(path);
  if (route === undefined) {
    throw new DomainError("not_found", `There is no ${request.method} ${path} on the inference host.`);
  }
  if (!route.methods.includes(request.method ?? "")) {
    const allow = route.methods.join(", ");
    const error = new DomainError("method_not_allowed", `${path} takes ${allow}, not ${request.method}.`);
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
  sendJson(exchange, { object: "list", data: models.filter(({ id }) => mayCall(caller, id)) });
}

/** The id may hold slashes, plain or encoded: SDKs encode them. */
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
    throw new DomainError("invalid_request", "The path holds a wrong percent-encoding.");
  }
}
