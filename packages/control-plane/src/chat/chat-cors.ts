import { allowedHeaders, PREFLIGHT_SECONDS } from "@fairlead/hosting/requests/cors";
import type { PlatformApp } from "../http/platform-host.ts";

/** CORS of the chat routes for the configured origins; never allows browser credentials. */

const METHODS = "GET, POST, PATCH, DELETE, OPTIONS";
const HEADERS =
  "authorization, content-type, idempotency-key, service-project-id, service-session-id, x-stainless-retry-count";
/** Response headers that pages may read, besides those that browsers always expose. */
const EXPOSED = [
  "service-session-id",
  "x-request-id",
  "x-should-retry",
  "retry-after",
  "x-ratelimit-limit",
  "x-ratelimit-remaining",
  "x-ratelimit-reset",
  "x-fairlead-cut-items",
  "idempotency-replayed",
].join(", ");

/** For a scope of routes; call it before adding the first. @param origins in browser form: `https://chat.example`. */
export function allowOrigins(scope: PlatformApp, origins: readonly string[]): void {
  const allowed = new Set(origins);
  scope.addHook("onRequest", async (request, reply) => {
    if (allowed.size === 0) return;
    void reply.header("vary", "Origin");
    const { origin } = request.headers;
    if (origin === undefined || !allowed.has(origin)) return;
    void reply.headers({ "access-control-allow-origin": origin, "access-control-expose-headers": EXPOSED });
    if (request.method !== "OPTIONS") return;
    void reply.headers({
      "access-control-allow-methods": METHODS,
      "access-control-allow-headers": allowedHeaders(request.headers["access-control-request-headers"], HEADERS),
      "access-control-max-age": PREFLIGHT_SECONDS,
    });
  });
}

/** Handles `OPTIONS` without authentication, because browsers send no credentials with it. */
export function answerPreflights(scope: PlatformApp, urls: readonly string[]): void {
  for (const url of urls) {
    scope.options(url, { schema: { hide: true } }, async (_request, reply) => reply.code(204).send());
  }
}
