import type { IncomingHttpHeaders, OutgoingHttpHeader, OutgoingHttpHeaders } from "node:http";
import { GATEWAY_PATH, TOKEN_SUBPROTOCOL_PREFIX } from "@fairlead/protocol/workload-connect";

/** Which headers cross the relay (design §6, Gateway and tunnel). Pure. */

/** Headers that speak of one connection only (RFC 9110 §7.6.1). */
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

/** A workload gets no credential of the platform, and no word of ours that the caller made up. */
const NOT_IN = new Set([
  ...HOP_BY_HOP,
  "authorization",
  "cookie",
  // The daemon's gateway names the workload's own address.
  "host",
  // Answered here already.
  "expect",
  "forwarded",
  "x-real-ip",
  // Of a handshake that ends here; the gateway makes its own.
  "sec-websocket-key",
  "sec-websocket-version",
]);
const NOT_IN_PREFIXES = ["x-forwarded-", "fairlead-", "x-fairlead-"];

/** A workload is a guest on the platform's own origin: it must not act on what else lives there. */
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
  // A browser would ask people for a password in the platform's name.
  "www-authenticate",
  "authentication-info",
  "x-request-id",
  "sec-websocket-accept",
]);
const NOT_OUT_PREFIXES = ["access-control-", "service-worker", "fairlead-", "x-fairlead-"];

const CONTENT_SECURITY = "sandbox";

/** The caller's headers, as the workload gets them. */
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
}

/** The workload's headers, as the caller gets them, with those that keep it a guest. */
export function outwardHeaders(
  headers: IncomingHttpHeaders,
  { nodeId, requestId }: OutwardContext,
): OutgoingHttpHeaders {
  const named = connectionTokens(headers.connection);
  const kept: Record<string, OutgoingHttpHeader | undefined> = {};
  for (const name in headers) {
    const pseudo = name.startsWith(":");
    if (pseudo || NOT_OUT.has(name) || named.has(name) || hasPrefix(name, NOT_OUT_PREFIXES)) continue;
    kept[name] = headers[name];
  }
  const policy = headers["content-security-policy"];
  // Browsers obey every policy that they are given: the workload's may only add to ours.
  kept["content-security-policy"] = typeof policy === "string" ? [policy, CONTENT_SECURITY] : CONTENT_SECURITY;
  kept["x-content-type-options"] = "nosniff";
  kept["x-request-id"] = requestId;
  if (headers.location !== undefined) kept["location"] = outwardLocation(headers.location, nodeId);
  return kept;
}

/** The workload's root is the gateway's address: a redirect to another path of its own stays inside the prefix. */
function outwardLocation(location: string, nodeId: string): string {
  return /^\/(?!\/)/.test(location) ? GATEWAY_PATH(nodeId) + location : location;
}

export interface OfferedSubprotocols {
  readonly token: string | null;
  /** What the workload is offered; null: none. */
  readonly others: string | null;
}

/** Parts the token that a browser brings from the subprotocols that are meant for the workload. */
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

/** `Connection` may name more headers that end here. */
function connectionTokens(connection: string | undefined): ReadonlySet<string> {
  if (connection === undefined || connection === "keep-alive" || connection === "close") return NONE;
  return new Set(connection.split(",").map((token) => token.trim().toLowerCase()));
}

const NONE: ReadonlySet<string> = new Set();
