import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";

/** Which of an upstream's headers reach the caller, and of a caller's the upstream. Everything else stays behind. */

const TO_CALLER: readonly string[] = ["content-type", "content-encoding", "retry-after", "retry-after-ms"];
export const RATE_LIMIT_PREFIX = "x-ratelimit-";

export function isEventStream(headers: IncomingHttpHeaders): boolean {
  // Of a compressed stream no event boundary is known, so nothing may be said in it.
  return mediaType(headers) === "text/event-stream" && (headers["content-encoding"] ?? "identity") === "identity";
}

export function isJson(headers: IncomingHttpHeaders): boolean {
  const type = mediaType(headers);
  return type === "application/json" || type.endsWith("+json");
}

export function headersForCaller(headers: IncomingHttpHeaders, eventStream: boolean): OutgoingHttpHeaders {
  const answer: OutgoingHttpHeaders = {};
  for (const name of TO_CALLER) {
    if (headers[name] !== undefined) answer[name] = headers[name];
  }
  for (const name in headers) {
    if (name.startsWith(RATE_LIMIT_PREFIX)) answer[name] = headers[name];
  }
  if (eventStream) {
    answer["cache-control"] = "no-cache";
    // Proxies such as nginx would otherwise hold events back.
    answer["x-accel-buffering"] = "no";
  } else if (headers["content-length"] !== undefined) {
    answer["content-length"] = headers["content-length"];
  }
  return answer;
}

/**
 * The body is known to be JSON, whatever the caller called it. `identity`, since streams are relayed byte by byte.
 * @param forward names of more headers that this upstream may get.
 */
export function headersForUpstream(
  headers: IncomingHttpHeaders,
  bodyLength: number,
  forward: readonly string[] = [],
): Record<string, string> {
  const request: Record<string, string> = {
    "content-type": "application/json",
    "content-length": String(bodyLength),
    accept: printable(headers.accept) ?? "*/*",
    "accept-encoding": "identity",
  };
  for (const name of ["traceparent", ...forward]) {
    const value = printable(headers[name]);
    if (value !== undefined) request[name] = value;
  }
  return request;
}

/** Node's parser lets bytes pass that HTTP/2 refuses. */
function printable(value: string | string[] | undefined): string | undefined {
  return typeof value === "string" && /^[\x20-\x7e]+$/.test(value) ? value : undefined;
}

function mediaType(headers: IncomingHttpHeaders): string {
  const type = headers["content-type"] ?? "";
  const end = type.indexOf(";");
  return (end === -1 ? type : type.slice(0, end)).trim().toLowerCase();
}
