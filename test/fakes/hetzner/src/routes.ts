import { ApiError, invalidInput, notFound, removed } from "./api-error.ts";
import { IMAGES, LOCATIONS, pricing, SERVER_TYPES, type ServerType, withStock } from "./catalog.ts";
import { type Faults, isShort } from "./faults.ts";
import { matcherOf } from "./label-selector.ts";
import { type Project, serverRequestSchema } from "./project.ts";

export interface Call {
  readonly method: string;
  /** Below `/v1`, without its query. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** As it was sent. */
  readonly body: string;
}

export interface Answer {
  readonly status: number;
  readonly body: object;
}

export interface RouteParts {
  readonly faults: Faults;
  /** What is answered at most on one page. */
  readonly maxPerPage: number;
  /** ISO 4217, of all prices. */
  readonly currency: string;
}

/** Removed on 1 October 2026: stock is in `locations` of the server types. */
const REMOVED = /^\/datacenters(?:\/\d+)?$/;

type Handler = (project: Project, call: Call, id: number) => Answer;

/** The API's routes, as far as somebody needs them who rents servers. */
export class Routes {
  readonly #parts: RouteParts;
  readonly #handlers: readonly (readonly [method: string, path: RegExp, handler: Handler])[];

  constructor(parts: RouteParts) {
    this.#parts = parts;
    this.#handlers = [
      ["GET", /^\/locations$/, (_, call) => this.#page(call, "locations", byName(LOCATIONS, call))],
      ["GET", /^\/locations\/(\d+)$/, (_project, _call, id) => one("location", LOCATIONS, id)],
      ["GET", /^\/server_types$/, (_, call) => this.#page(call, "server_types", byName(this.#types(), call))],
      ["GET", /^\/server_types\/(\d+)$/, (_project, _call, id) => one("server_type", this.#types(), id)],
      ["GET", /^\/images$/, (_, call) => this.#page(call, "images", byName(IMAGES, call).filter(ofItsKind(call)))],
      ["GET", /^\/pricing$/, () => this.#pricing()],
      ["GET", /^\/ssh_keys$/, (_, call) => this.#page(call, "ssh_keys", [])],
      ["GET", /^\/servers$/, (project, call) => this.#servers(project, call)],
      ["POST", /^\/servers$/, (project, call) => ({ status: 201, body: project.create(serverRequest(call)) })],
      ["GET", /^\/servers\/(\d+)$/, (project, _, id) => ({ status: 200, body: { server: project.server(id) } })],
      ["DELETE", /^\/servers\/(\d+)$/, (project, _, id) => ({ status: 200, body: { action: project.delete(id) } })],
      ["GET", /^\/servers\/(\d+)\/actions$/, (project, call, id) => this.#page(call, "actions", project.actionsOf(id))],
      ["GET", /^\/actions\/(\d+)$/, (project, _, id) => ({ status: 200, body: { action: project.action(id) } })],
    ];
  }

  /** @throws ApiError */
  answer(project: Project, call: Call): Answer {
    if (this.#parts.faults.removed.includes(call.path)) throw removed();
    for (const [method, path, handler] of this.#handlers) {
      const match = path.exec(call.path);
      if (match !== null && method === call.method) return handler(project, call, Number(match[1]));
    }
    if (REMOVED.test(call.path)) throw removed();
    throw new ApiError(404, "not_found", { message: `no route ${call.method} ${call.path}` });
  }

  #servers(project: Project, call: Call): Answer {
    const { query } = call;
    const selector = query.get("label_selector");
    const matches = selector === null ? () => true : matcherOf(selector);
    const statuses = query.getAll("status");
    const name = query.get("name");
    const found = project
      .list()
      .filter((server) => matches(server.parts.labels))
      .filter((server) => name === null || server.parts.name === name)
      .filter((server) => statuses.length === 0 || statuses.includes(server.status));
    return this.#page(call, "servers", found);
  }

  #types(): readonly ServerType[] {
    const { soldOut } = this.#parts.faults;
    return SERVER_TYPES.map((each) => withStock(each, (type, place) => isShort(soldOut, type, place)));
  }

  #pricing(): Answer {
    const { faults, currency } = this.#parts;
    if (faults.noPricing) throw new ApiError(404, "not_found", { message: "no route GET /pricing" });
    return { status: 200, body: { pricing: pricing(currency) } };
  }

  #page(call: Call, plural: string, all: readonly object[]): Answer {
    const page = positive(call.query, "page", 1);
    const perPage = Math.min(positive(call.query, "per_page", 25), this.#parts.maxPerPage);
    const last = Math.max(1, Math.ceil(all.length / perPage));
    const pagination = {
      page,
      per_page: perPage,
      previous_page: page > 1 ? page - 1 : null,
      next_page: page < last ? page + 1 : null,
      last_page: last,
      total_entries: all.length,
    };
    const entries = all.slice((page - 1) * perPage, page * perPage);
    return { status: 200, body: { [plural]: entries, meta: { pagination } } };
  }
}

function byName<T extends { readonly name: string }>(all: readonly T[], { query }: Call): readonly T[] {
  const name = query.get("name");
  return name === null ? all : all.filter((each) => each.name === name);
}

function ofItsKind({ query }: Call): (image: (typeof IMAGES)[number]) => boolean {
  const architecture = query.get("architecture");
  return (image) => architecture === null || image.architecture === architecture;
}

function one(singular: string, all: readonly { readonly id: number }[], id: number): Answer {
  const found = all.find((each) => each.id === id);
  if (found === undefined) throw notFound(singular, id);
  return { status: 200, body: { [singular]: found } };
}

function positive(query: URLSearchParams, name: string, otherwise: number): number {
  const value = Number(query.get(name) ?? otherwise);
  if (!Number.isInteger(value) || value < 1) throw invalidInput(name, "must be a positive number");
  return value;
}

function serverRequest({ body }: Call): ReturnType<typeof serverRequestSchema.parse> {
  let json: unknown;
  try {
    json = JSON.parse(body);
  } catch {
    throw new ApiError(400, "json_error", { message: "the request body contains invalid JSON" });
  }
  const parsed = serverRequestSchema.safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw invalidInput(String(issue?.path[0] ?? "body"), issue?.message ?? "is invalid");
}
