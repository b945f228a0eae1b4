import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
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
export function requestHeaders(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  const kept: OutgoingHttpHeaders = {};
  for (const name in headers) if (name !== "host" && passes(name)) kept[name] = headers[name];
  return kept;
}

/** The workload's answer for the tunnel. */
export function answerHeaders(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const named = connectionTokens(headers.connection);
  const kept: IncomingHttpHeaders = {};
  for (const name in headers) if (passes(name) && !named.has(name)) kept[name] = headers[name];
  return kept;
}

function passes(name: string): boolean {
  return !HOP_BY_HOP.has(name) && !OURS.has(name);
}

/** `Connection` may name more headers that end here. */
function connectionTokens(connection: string | undefined): ReadonlySet<string> {
  return new Set((connection ?? "").split(",").map((token) => token.trim().toLowerCase()));
}
