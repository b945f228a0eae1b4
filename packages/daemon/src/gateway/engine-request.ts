import type { RenderedRequest } from "@fairlead/wire/http1/http1-connection";
import { HeaderRefused, headerLines, requestLine } from "@fairlead/wire/http1/http1-request";
import type { IncomingRequest } from "../tunnel/tunnel-call.ts";
import type { EngineAddress } from "./engine-connections.ts";
import { requestHeaders } from "./gateway-headers.ts";

/** Methods without a body need no `content-length: 0` (RFC 9110 §8.6). */
const BODILESS = new Set(["GET", "HEAD", "DELETE", "OPTIONS", "TRACE"]);
/** More digits would exceed the exact integer range. */
const LENGTH = /^\d{1,15}$/;

/** Builds the request to the workload. @throws HeaderRefused */
export function engineRequest(
  { method, path, kind, headers }: IncomingRequest,
  engine: EngineAddress,
): RenderedRequest {
  // With `close`, an engine that rejects a large body early resets the connection and its response is lost.
  const own = `host: ${engine.host}:${engine.port}\r\nconnection: keep-alive\r\n`;
  const head = requestLine(method, path) + own + headerLines(requestHeaders(headers));
  const length = headers["content-length"];
  if (length !== undefined) {
    if (!LENGTH.test(length)) throw new HeaderRefused("invalid content-length");
    return { method, head: `${head}\r\n`, body: Number(length) };
  }
  if (kind === "no-body") {
    return { method, head: `${head}${BODILESS.has(method) ? "" : "content-length: 0\r\n"}\r\n`, body: [] };
  }
  // For any method: without framing, the engine would read the body as the next request.
  return { method, head: `${head}transfer-encoding: chunked\r\n\r\n`, body: "chunked" };
}
