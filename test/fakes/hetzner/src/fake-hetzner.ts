import { createServer, type Server as HttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { ApiError } from "./api-error.ts";
import { type Faults, NO_FAULTS, strikes } from "./faults.ts";
import { type MachineStarter, noMachines } from "./machine-starter.ts";
import { Project } from "./project.ts";
import { RequestBudget } from "./request-budget.ts";
import { type Answer, type Call, Routes } from "./routes.ts";

export type TokenKind = "read_write" | "read_only";

export interface FakeOptions {
  readonly host?: string;
  readonly port?: number;
  readonly starter?: MachineStarter;
  readonly faults?: Partial<Faults>;
  readonly maxPerPage?: number;
  readonly serverLimit?: number;
  readonly callsPerHour?: number;
  /** Of its prices; ISO 4217. */
  readonly currency?: string;
  /** Unix milliseconds. */
  readonly now?: () => number;
}

interface Watch {
  readonly matches: (call: Call) => boolean;
  readonly work: () => Promise<void> | void;
}

interface Grant {
  readonly project: Project;
  readonly kind: TokenKind;
}

/** The Hetzner Cloud API on a port of this machine. Answers are valid by the provider's document; faults come by script. */
export class FakeHetzner {
  readonly faults: Faults;
  /** What it was asked, in order. */
  readonly calls: Call[] = [];
  readonly #options: FakeOptions;
  readonly #now: () => number;
  readonly #routes: Routes;
  readonly #grants = new Map<string, Grant>();
  readonly #budgets = new Map<Project, RequestBudget>();
  readonly #http: HttpServer;
  readonly #watches = new Set<Watch>();
  #lastId = 1000;
  #lastCall = 0;

  private constructor(options: FakeOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    this.faults = { ...structuredClone(NO_FAULTS), ...options.faults };
    const { maxPerPage = 50, currency = "EUR" } = options;
    this.#routes = new Routes({ faults: this.faults, maxPerPage, currency });
    this.#http = createServer((request, response) => void this.#serve(request, response));
  }

  static async start(options: FakeOptions = {}): Promise<FakeHetzner> {
    const fake = new FakeHetzner(options);
    const { host = "127.0.0.1", port = 0 } = options;
    await new Promise<void>((resolve, reject) => {
      fake.#http.once("error", reject).listen(port, host, resolve);
    });
    return fake;
  }

  /** In the place of `https://api.hetzner.cloud/v1`. */
  get url(): string {
    const { address, port } = this.#http.address() as AddressInfo;
    return `http://${address}:${port}/v1`;
  }

  addProject(name: string): Project {
    const { starter = noMachines, serverLimit = 100 } = this.#options;
    const now = (): string => new Date(this.#now()).toISOString().replace(/\.\d+Z$/, "+00:00");
    const nextId = (): number => ++this.#lastId;
    const project = new Project({ name, faults: this.faults, starter, serverLimit, nextId, now });
    this.#budgets.set(project, new RequestBudget(this.#now, this.#options.callsPerHour));
    return project;
  }

  /** @returns the token, as long as a real one. */
  addToken(project: Project, kind: TokenKind = "read_write"): string {
    const token = `fake${kind}${this.#grants.size}`.replaceAll("_", "").padEnd(64, "x");
    this.#grants.set(token, { project, kind });
    return token;
  }

  revoke(token: string): void {
    this.#grants.delete(token);
  }

  /** Does something once: when such a call has been carried out, and before it is answered. */
  once(matches: (call: Call) => boolean, work: () => Promise<void> | void): void {
    this.#watches.add({ matches, work });
  }

  /** Everything works again, and nothing waits to break it. */
  heal(): void {
    this.#watches.clear();
    for (const budget of this.#budgets.values()) budget.refill();
    Object.assign(this.faults, structuredClone(NO_FAULTS));
  }

  /** Ends it, and removes every machine that it started. */
  async close(): Promise<void> {
    this.#http.closeAllConnections();
    await new Promise((resolve) => this.#http.close(resolve));
    const { starter = noMachines } = this.#options;
    for (const project of this.#budgets.keys()) {
      await project.settled();
      for (const { parts } of project.servers) await starter.remove(parts.id);
    }
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://fake");
    const method = request.method ?? "GET";
    const path = url.pathname.replace(/^\/v1(?=\/)/, "");
    const call: Call = { method, path, query: url.searchParams, body: await text(request) };
    this.calls.push(call);
    response.setHeader("content-type", "application/json");
    response.setHeader("x-correlation-id", `fake-${++this.#lastCall}`);
    const { status, body } = this.#answer(call, { bearer: request.headers.authorization ?? "", response });
    await this.#tellWatches(call);
    if (status < 300 && method !== "GET" && strikes(this.faults, "lostAnswers")) {
      response.destroy();
      return;
    }
    response.writeHead(status).end(JSON.stringify(body));
  }

  async #tellWatches(call: Call): Promise<void> {
    for (const watch of this.#watches) {
      if (!watch.matches(call)) continue;
      this.#watches.delete(watch);
      await watch.work();
    }
  }

  #answer(call: Call, { bearer, response }: { bearer: string; response: ServerResponse }): Answer {
    try {
      const { project, kind } = this.#grantOf(bearer);
      this.#spend(project, response);
      if (strikes(this.faults, "unavailable")) {
        throw new ApiError(503, "service_error", { message: "service is currently not available" });
      }
      if (kind === "read_only" && call.method !== "GET") {
        throw new ApiError(403, "token_readonly", { message: "token is only allowed to perform GET requests" });
      }
      return this.#routes.answer(project, call);
    } catch (error) {
      if (error instanceof ApiError) return error;
      const message = error instanceof Error ? error.message : String(error);
      return new ApiError(500, "server_error", { message });
    }
  }

  #grantOf(bearer: string): Grant {
    const grant = this.#grants.get(bearer.replace(/^Bearer /, ""));
    if (grant !== undefined) return grant;
    throw new ApiError(401, "unauthorized", { message: "unable to authenticate" });
  }

  #spend(project: Project, response: ServerResponse): void {
    const budget = this.#budgets.get(project);
    const striking = strikes(this.faults, "rateLimited");
    if (striking) budget?.exhaust();
    const allowed = budget?.spend() === true && !striking;
    for (const [name, value] of Object.entries(budget?.headers ?? {})) response.setHeader(name, value);
    if (allowed) return;
    throw new ApiError(429, "rate_limit_exceeded", { message: "limit of 3600 requests per hour reached" });
  }
}
