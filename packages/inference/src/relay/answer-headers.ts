import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";

/** Which of an upstream's headers reach the caller, and of a caller's the upstream. Everything else stays behind. */

const TO_CALLER: readonly string[] = ["content-type", "content-encoding", "retry-after", "retry-after-ms"];
export const RATE_LIMIT_PREFIX = "x-ratelimit-";

/** What a response is by its `content-type`; `unlabelled` where that says nothing of it. */
export type ResponseForm = "json" | "events" | "unlabelled" | "other";

const UNLABELLED: ReadonlySet<string> = new Set(["", "text/plain", "application/octet-stream"]);

export function bodyFormOf(headers: IncomingHttpHeaders): ResponseForm {
  const type = mediaType(headers);
  if (type === "application/json" || type.endsWith("+json")) return "json";
  if (type === "text/event-stream") return "events";
  return UNLABELLED.has(type) ? "unlabelled" : "other";
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

/** Node's parser lets bytes pass that a header may not have. */
function printable(value: string | string[] | undefined): string | undefined {
  return typeof value === "string" && /^[\x20-\x7e]+$/.test(value) ? value : undefined;
}

export function mediaType(headers: IncomingHttpHeaders): string {
  const type = headers["content-type"] ?? "";
  const end = type.indexOf(";");
  return (end === -1 ? type : type.slice(0, end)).trim().toLowerCase();
}
