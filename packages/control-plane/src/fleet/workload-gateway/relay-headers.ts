import type { IncomingHttpHeaders, OutgoingHttpHeader, OutgoingHttpHeaders } from "node:http";
import { GATEWAY_PATH, TOKEN_SUBPROTOCOL_PREFIX } from "@fairlead/protocol/workload-connect";

/** Which headers cross the relay (decisions/0025). Pure. */

/** Hop-by-hop headers (RFC 9110 §7.6.1). */
const HOP_BY_HOP = [
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "http2-settings",
];

/** A workload gets no platform credentials, and no client may forge our own headers. */
const NOT_IN = new Set([
  ...HOP_BY_HOP,
  "authorization",
  "cookie",
  // The daemon's gateway sets the workload's own address.
  "host",
  // Already handled here.
  "expect",
  "forwarded",
  "x-real-ip",
  // Part of a handshake that ends here; the gateway makes its own.
  "sec-websocket-key",
  "sec-websocket-version",
]);
const NOT_IN_PREFIXES = ["x-forwarded-", "fairlead-", "x-fairlead-"];

/** Workloads share the platform's origin, and must not affect the rest of it. */
const NOT_OUT = new Set([
  ...HOP_BY_HOP,
  "set-cookie",
  "set-cookie2",
  "clear-site-data",
  "strict-transport-security",
  "public-key-pins",
  "alt-svc",
  "nel",
  "report-to",
  "reporting-endpoints",
  // A browser would ask for a password in the platform's name.
  "www-authenticate",
  "authentication-info",
  "x-request-id",
  "sec-websocket-accept",
]);
const NOT_OUT_PREFIXES = ["access-control-", "service-worker", "fairlead-", "x-fairlead-"];

const CONTENT_SECURITY = "sandbox";

/** Request headers for the workload. */
export function inwardHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const named = connectionTokens(headers.connection);
  const kept: Record<string, string> = {};
  for (const name in headers) {
    const value = headers[name];
    if (typeof value === "string" && !NOT_IN.has(name) && !named.has(name) && !hasPrefix(name, NOT_IN_PREFIXES)) {
      kept[name] = value;
    }
  }
  return kept;
}

export interface OutwardContext {
  readonly nodeId: string;
  readonly requestId: string;
  /** Prefix of every path sent to the client. */
  readonly publicPath: string;
}

/** Response headers for the client, with those that isolate the workload. */
export function outwardHeaders(
  headers: IncomingHttpHeaders,
  { nodeId, requestId, publicPath }: OutwardContext,
): OutgoingHttpHeaders {
  const named = connectionTokens(headers.connection);
  const kept: Record<string, OutgoingHttpHeader | undefined> = {};
  for (const name in headers) {
    if (NOT_OUT.has(name) || named.has(name) || hasPrefix(name, NOT_OUT_PREFIXES)) continue;
    kept[name] = headers[name];
  }
  const policy = headers["content-security-policy"];
  // Browsers enforce all policies, so the workload's can only restrict ours further.
  kept["content-security-policy"] = typeof policy === "string" ? [policy, CONTENT_SECURITY] : CONTENT_SECURITY;
  kept["x-content-type-options"] = "nosniff";
  kept["x-request-id"] = requestId;
  if (headers.location !== undefined)
    kept["location"] = outwardLocation(headers.location, publicPath + GATEWAY_PATH(nodeId));
  return kept;
}

/** The workload's root is the gateway's URL: redirects to its own paths stay below the prefix. */
function outwardLocation(location: string, gateway: string): string {
  return /^\/(?!\/)/.test(location) ? gateway + location : location;
}

export interface OfferedSubprotocols {
  readonly token: string | null;
  /** Subprotocols offered to the workload; null: none. */
  readonly others: string | null;
}

/** Separates the browser's token from the subprotocols for the workload. */
export function offeredSubprotocols(offered: string | undefined): OfferedSubprotocols {
  const names = (offered ?? "").split(",").flatMap((name) => name.trim() || []);
  const isToken = (name: string): boolean => name.startsWith(TOKEN_SUBPROTOCOL_PREFIX);
  const token = names.find(isToken)?.slice(TOKEN_SUBPROTOCOL_PREFIX.length) ?? null;
  const others = names.filter((name) => !isToken(name));
  return { token, others: others.length === 0 ? null : others.join(", ") };
}

function hasPrefix(name: string, prefixes: readonly string[]): boolean {
  return prefixes.some((prefix) => name.startsWith(prefix));
}

/** `Connection` may name more hop-by-hop headers. */
function connectionTokens(connection: string | undefined): ReadonlySet<string> {
  if (connection === undefined || connection === "keep-alive" || connection === "close") return NONE;
  return new Set(connection.split(",").map((token) => token.trim().toLowerCase()));
}

const NONE: ReadonlySet<string> = new Set();
