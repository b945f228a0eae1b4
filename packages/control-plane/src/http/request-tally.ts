import { Distribution, REQUEST_SECONDS } from "../distribution.ts";

export interface AnsweredRequest {
  readonly method: string;
  /** The pattern, never the path as sent: ids are no business of a metric. */
  readonly route: string;
  /** 0: the caller left before there was an answer. */
  readonly status: number;
}

export interface RequestCount extends AnsweredRequest {
  count: number;
}

export interface RouteTimes {
  readonly method: string;
  readonly route: string;
  readonly seconds: Distribution;
}

/** A request that met no route. */
export const UNKNOWN_ROUTE = "unknown";

/** The answered requests of one host. */
export class RequestTally {
  readonly #counts = new Map<string, RequestCount>();
  readonly #times = new Map<string, RouteTimes>();

  add(request: AnsweredRequest, seconds: number): void {
    const { method, route, status } = request;
    const name = `${method} ${route}`;
    const key = `${name} ${status}`;
    const count = this.#counts.get(key);
    if (count) count.count += 1;
    else this.#counts.set(key, { method, route, status, count: 1 });
    let times = this.#times.get(name);
    if (!times) {
      times = { method, route, seconds: new Distribution(REQUEST_SECONDS) };
      this.#times.set(name, times);
    }
    times.seconds.observe(seconds);
  }

  counts(): Iterable<Readonly<RequestCount>> {
    return this.#counts.values();
  }

  times(): Iterable<RouteTimes> {
    return this.#times.values();
  }
}

/** `/v1/nodes/:id(^[^:]+)/ready` → `/v1/nodes/{id}/ready`, as documents print it. */
export function printedRoute(pattern: string | undefined): string {
  if (pattern === undefined) return UNKNOWN_ROUTE;
  return pattern.replaceAll(/(?<!:):(\w+)(?:\([^)]*\))?/g, "{$1}").replaceAll("::", ":");
}
