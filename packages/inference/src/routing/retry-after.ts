import type { IncomingHttpHeaders } from "node:http";

/** Longer delays requested by upstreams are cut to this. */
export const MAX_RETRY_AFTER_SECONDS = 3600;
/** All three forms of an HTTP date start with the name of a day. */
const DATE = /^[A-Z][a-z]{2,8},? /;

/**
 * The delay that an upstream requests (RFC 9110 §10.2.3), also in the milliseconds form of some SDKs.
 * @param now Unix milliseconds; used for dates if the upstream sends no `Date`.
 * @returns undefined if absent or invalid.
 */
export function retryAfterSeconds(headers: IncomingHttpHeaders, now: number): number | undefined {
  const milliseconds = headers["retry-after-ms"] ?? headers["x-ms-retry-after-ms"];
  const told = typeof milliseconds === "string" ? numberIn(milliseconds) : null;
  if (told !== null) return bounded(told / 1000);
  const text = headers["retry-after"]?.trim() ?? "";
  const seconds = numberIn(text);
  if (seconds !== null) return bounded(seconds);
  if (!DATE.test(text)) return undefined;
  const theirNow = Date.parse(headers.date ?? "");
  return bounded((Date.parse(text) - (Number.isNaN(theirNow) ? now : theirNow)) / 1000);
}

/** Digits; some upstreams send a fraction. */
function numberIn(text: string): number | null {
  return /^\d{1,20}(\.\d{1,20})?$/.test(text) ? Number(text) : null;
}

function bounded(seconds: number): number | undefined {
  return seconds > 0 ? Math.min(seconds, MAX_RETRY_AFTER_SECONDS) : undefined;
}
