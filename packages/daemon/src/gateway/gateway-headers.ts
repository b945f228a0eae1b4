import type { IncomingHttpHeaders } from "node:http";
import { TUNNEL_FAULT_HEADER, TUNNEL_TOKEN_HEADER } from "@fairlead/protocol/daemon-link";

/** Hop-by-hop headers (RFC 9110 §7.6.1). */
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

/** The gateway's own headers, never passed on, so that a workload cannot forge them. */
const OURS = new Set([TUNNEL_TOKEN_HEADER, TUNNEL_FAULT_HEADER]);

/** Request headers for the workload. */
export function requestHeaders(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const kept: IncomingHttpHeaders = {};
  for (const name in headers) if (name !== "host" && passes(name)) kept[name] = headers[name];
  return kept;
}

/** Response headers for the tunnel. */
export function answerHeaders(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const named = connectionTokens(headers.connection);
  const kept: IncomingHttpHeaders = {};
  for (const name in headers) {
    if (passes(name) && !named.has(name)) kept[name] = headers[name];
  }
  return kept;
}

function passes(name: string): boolean {
  return !HOP_BY_HOP.has(name) && !OURS.has(name);
}

const NONE: ReadonlySet<string> = new Set();

/** `Connection` may list further hop-by-hop headers. */
function connectionTokens(connection: string | undefined): ReadonlySet<string> {
  if (connection === undefined) return NONE;
  return new Set(connection.split(",").map((token) => token.trim().toLowerCase()));
}
