import type { IncomingMessage } from "node:http";
import { DomainError } from "@fairlead/protocol/errors";

/** Rejects heads that two parsers could interpret differently, on both hosts. Node keeps the first of a repeated field, a proxy may keep the last. */

/** Fields read here, with a bit each. Fields that Node joins into a list (`cookie`, `x-forwarded-for`) may repeat. */
const SINGLE_FIELDS: ReadonlyMap<string, number> = new Map(
  [
    "host",
    "authorization",
    "content-type",
    "content-length",
    "idempotency-key",
    "if-range",
    "origin",
    "range",
    "sec-fetch-site",
    "sec-websocket-key",
    "sec-websocket-version",
    "service-project-id",
    "service-session-id",
    "x-api-key",
  ].map((name, at) => [name, 1 << at]),
);

/** A name or address with an optional port (RFC 3986 §3.2), without userinfo. */
const HOST = /^(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/;

/** @returns what is wrong, or null if the head is unambiguous. */
export function headFault({ rawHeaders, headers: { host }, url = "" }: IncomingMessage): DomainError | null {
  // RFC 9112 §3.2.2: the target's host would override `host`, and nothing here is a proxy.
  if (!url.startsWith("/") && url !== "*") return fault("The request target must be a path.", null);
  // HTTP/1.0 does not require the field; Node rejects HTTP/1.1 without it.
  if (host !== undefined && !HOST.test(host)) return fault("The header `host` must be a host and a port.", "host");
  const repeated = repeatedField(rawHeaders);
  return repeated === null ? null : fault(`The header \`${repeated}\` must not be repeated.`, repeated);
}

function repeatedField(rawHeaders: readonly string[]): string | null {
  let seen = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]?.toLowerCase() ?? "";
    const bit = SINGLE_FIELDS.get(name);
    if (bit === undefined) continue;
    if ((seen & bit) !== 0) return name;
    seen |= bit;
  }
  return null;
}

function fault(message: string, param: string | null): DomainError {
  return new DomainError("invalid_request", message, param === null ? {} : { param });
}
