import { Distribution, REQUEST_SECONDS } from "../distribution.ts";

export interface AnsweredRequest {
  readonly method: string;
  /** The route pattern, never the actual path: metrics must not contain IDs. */
  readonly route: string;
  /** 0: the client disconnected before the response. */
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

/** The request matched no route. */
export const UNKNOWN_ROUTE = "unknown";

/** Completed requests of one host. */
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

/** Converts `/v1/nodes/:id(^[^:]+)/ready` to `/v1/nodes/{id}/ready`, the form used in documents. */
export function printedRoute(pattern: string | undefined): string {
  if (pattern === undefined) return UNKNOWN_ROUTE;
  return pattern.replaceAll(/(?<!:):(\w+)(?:\([^)]*\))?/g, "{$1}").replaceAll("::", ":");
}
