import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import type { OutgoingHttpHeaders as TunnelAnswerHeaders, IncomingHttpHeaders as TunnelHeaders } from "node:http2";
import { TUNNEL_FAULT_HEADER, TUNNEL_TOKEN_HEADER, TUNNEL_WORKLOAD_HEADER } from "@fairlead/protocol/daemon-link";

const BEYOND_ASCII = /[\x80-\xff]/;

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
export function requestHeaders(headers: TunnelHeaders): OutgoingHttpHeaders {
  const kept: OutgoingHttpHeaders = {};
  for (const [name, value] of Object.entries(headers)) {
    if (!name.startsWith(":") && name !== "host" && passes(name)) kept[name] = sentText(value);
  }
  return kept;
}

/** The workload's answer for the tunnel. */
export function answerHeaders(status: number, headers: IncomingHttpHeaders): TunnelAnswerHeaders {
  const named = connectionTokens(headers.connection);
  const kept: TunnelAnswerHeaders = { ":status": status };
  for (const [name, value] of Object.entries(headers)) {
    if (passes(name) && !named.has(name)) kept[name] = value;
  }
  return kept;
}

/** The server's Node writes the tunnel's request headers as UTF-8, and this one reads them as Latin-1: this undoes it, so that the engine gets the caller's bytes. */
function sentText(value: string | string[] | undefined): string | string[] | undefined {
  if (Array.isArray(value)) return value.map((text) => Buffer.from(text, "latin1").toString());
  return value === undefined || !BEYOND_ASCII.test(value) ? value : Buffer.from(value, "latin1").toString();
}

function passes(name: string): boolean {
  return !HOP_BY_HOP.has(name) && !OURS.has(name);
}

/** `Connection` may name more headers that end here. */
function connectionTokens(connection: string | undefined): ReadonlySet<string> {
  return new Set((connection ?? "").split(",").map((token) => token.trim().toLowerCase()));
}
