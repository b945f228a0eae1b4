import type { IncomingHttpHeaders } from "node:http";
import { TUNNEL_FAULT_HEADER, TUNNEL_TOKEN_HEADER, TUNNEL_WORKLOAD_HEADER } from "@fairlead/protocol/daemon-link";

/** Headers that speak of one connection only (RFC 9110 §7.6.1); HTTP/2 refuses them. */
const HOP_BY_HOP = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Ours, never passed on in either direction: a workload must not be able to speak in the gateway's name. */
const OURS = new Set([TUNNEL_WORKLOAD_HEADER, TUNNEL_TOKEN_HEADER, TUNNEL_FAULT_HEADER]);

/** The request's headers for the workload. */
export function requestHeaders(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const kept: IncomingHttpHeaders = {};
  for (const name in headers) if (name !== "host" && passes(name)) kept[name] = headers[name];
  return kept;
}

/** Of these the first alone counts, where an engine says one several times; the others are lists (RFC 9110 §5.3). */
const SINGLE = new Set([
  "age",
  "content-encoding",
  "content-length",
  "content-location",
  "content-range",
  "content-type",
  "date",
  "etag",
  "expires",
  "last-modified",
  "location",
  "retry-after",
  "server",
]);

/** The workload's answer for the tunnel. */
export function answerHeaders(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const named = connectionTokens(valueOf("connection", headers.connection));
  const kept: IncomingHttpHeaders = {};
  for (const name in headers) {
    if (passes(name) && !named.has(name)) kept[name] = valueOf(name, headers[name]);
  }
  return kept;
}

/** Cookies alone pass as a list. */
function valueOf<T extends string | readonly string[] | undefined>(name: string, value: T): T | string | undefined {
  if (typeof value !== "object" || name === "set-cookie") return value;
  return SINGLE.has(name) ? value[0] : value.join(", ");
}

function passes(name: string): boolean {
  return !HOP_BY_HOP.has(name) && !OURS.has(name);
}

const NONE: ReadonlySet<string> = new Set();

/** `Connection` may name more headers that end here. */
function connectionTokens(connection: string | undefined): ReadonlySet<string> {
  if (connection === undefined) return NONE;
  return new Set(connection.split(",").map((token) => token.trim().toLowerCase()));
}
