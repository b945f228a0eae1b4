import type { IncomingMessage } from "node:http";
import { allowedHeaders, PREFLIGHT_SECONDS } from "@fairlead/hosting/requests/cors";

/** CORS of the inference host, for web origins configured by the operator. It uses no cookies, so any origin is safe to allow. */

/** Allows all origins, including `null`. */
export const ANY_ORIGIN = "*";

/** Headers of the SDKs that run in browsers. */
const HEADERS = [
  "authorization",
  "content-type",
  "idempotency-key",
  "traceparent",
  "user-agent",
  ...[
    "arch",
    "async",
    "helper-method",
    "lang",
    "os",
    "package-version",
    "retry-count",
    "runtime",
    "runtime-version",
  ].map((name) => `x-stainless-${name}`),
  "x-stainless-timeout",
].join(", ");

/** Response headers that pages may read, in addition to the browser's defaults. */
const EXPOSED = [
  "x-request-id",
  "retry-after",
  "retry-after-ms",
  "x-should-retry",
  ...["limit", "remaining", "reset"].flatMap((what) => [`x-ratelimit-${what}-requests`, `x-ratelimit-${what}-tokens`]),
  ...["upstream", "attempts", "overhead-ms", "ignored"].map((name) => `x-fairlead-${name}`),
  "idempotency-replayed",
].join(", ");

export class InferenceCors {
  readonly #origins: ReadonlySet<string>;
  readonly #isOpen: boolean;

  /** @param origins in the browser's format, or `*`. */
  constructor(origins: readonly string[]) {
    this.#origins = new Set(origins);
    this.#isOpen = this.#origins.has(ANY_ORIGIN);
  }

  /** Headers of every response to the request, including errors. */
  headersFor({ headers: { origin } }: IncomingMessage): Record<string, string> {
    const vary = { vary: "Origin" };
    const allowed = this.#isOpen ? ANY_ORIGIN : origin !== undefined && this.#origins.has(origin) ? origin : null;
    if (allowed === null) return vary;
    return { ...vary, "access-control-allow-origin": allowed, "access-control-expose-headers": EXPOSED };
  }

  /** @param methods supported by the route. */
  preflightHeaders({ headers }: IncomingMessage, methods: readonly string[]): Record<string, string> {
    return {
      "access-control-allow-methods": methods.join(", "),
      "access-control-allow-headers": allowedHeaders(headers["access-control-request-headers"], HEADERS),
      "access-control-max-age": PREFLIGHT_SECONDS,
    };
  }
}

/** @returns null if no origin is allowed; then no CORS headers are sent. */
export function corsOf(origins: readonly string[]): InferenceCors | null {
  return origins.length === 0 ? null : new InferenceCors(origins);
}
