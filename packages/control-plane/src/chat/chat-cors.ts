import type { PlatformApp } from "../http/platform-host.ts";

/** CORS of the chat routes, for web pages of origins that the operator names; never with credentials of the browser's own. */

const METHODS = "GET, POST, PATCH, DELETE, OPTIONS";
const HEADERS =
  "authorization, content-type, idempotency-key, service-project-id, service-session-id, x-stainless-retry-count";
/** What a page may read of an answer, beside what browsers always show. */
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
const MAX_AGE_SECONDS = "600";
/** Headers that a page asks for, in the form that browsers send them in. */
const HEADER_NAMES = /^[a-z0-9!#$%&'*+.^_`|~-]+(\s*,\s*[a-z0-9!#$%&'*+.^_`|~-]+)*$/i;
const MOST_ASKED = 2048;

/** For a scope of routes; call before the first of them. @param origins as browsers send them: `https://chat.example`. */
export function allowOrigins(scope: PlatformApp, origins: readonly string[]): void {
  const allowed = new Set(origins);
  scope.addHook("onRequest", async (request, reply) => {
    if (allowed.size === 0) return;
    void reply.header("vary", "Origin");
    const { origin } = request.headers;
    if (origin === undefined || !allowed.has(origin)) return;
    void reply.headers({ "access-control-allow-origin": origin, "access-control-expose-headers": EXPOSED });
    if (request.method !== "OPTIONS") return;
    // SDKs add headers of their own, more with each version; without credentials there is nothing to guard here.
    const asked = request.headers["access-control-request-headers"] ?? "";
    const names = asked.length <= MOST_ASKED && HEADER_NAMES.test(asked) ? asked : HEADERS;
    void reply.headers({
      "access-control-allow-methods": METHODS,
      "access-control-allow-headers": names,
      "access-control-max-age": MAX_AGE_SECONDS,
    });
  });
}

/** Answers `OPTIONS` at these paths, without a credential: browsers send none with it. */
export function answerPreflights(scope: PlatformApp, urls: readonly string[]): void {
  for (const url of urls) {
    scope.options(url, { schema: { hide: true } }, async (_request, reply) => reply.code(204).send());
  }
}
