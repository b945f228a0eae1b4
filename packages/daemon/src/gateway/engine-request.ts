import type { RenderedRequest } from "@fairlead/wire/http1/http1-connection";
import { HeaderRefused, headerLines, requestLine } from "@fairlead/wire/http1/http1-request";
import type { TunnelRequest } from "../tunnel/tunnel-call.ts";
import type { EngineAddress } from "./engine-connections.ts";
import { requestHeaders } from "./gateway-headers.ts";

/** Of these nobody expects a body; others without one say so (RFC 9110 §8.6). */
const BODILESS = new Set(["GET", "HEAD", "DELETE", "OPTIONS", "TRACE"]);
/** More digits could not be counted exactly. */
const LENGTH = /^\d{1,15}$/;

/** A request as the workload gets it. @throws HeaderRefused */
export function engineRequest({ method, path, kind, headers }: TunnelRequest, engine: EngineAddress): RenderedRequest {
  // Told to close, an engine that refuses a large body at once resets the connection, and its refusal is lost.
  const own = `host: ${engine.host}:${engine.port}\r\nconnection: keep-alive\r\n`;
  const head = requestLine(method, path) + own + headerLines(requestHeaders(headers));
  const length = headers["content-length"];
  if (length !== undefined) {
    if (!LENGTH.test(length)) throw new HeaderRefused("the request's length is refused");
    return { method, head: `${head}\r\n`, body: Number(length) };
  }
  if (kind === "no-body") {
    return { method, head: `${head}${BODILESS.has(method) ? "" : "content-length: 0\r\n"}\r\n`, body: [] };
  }
  // Whatever its method: without a frame the engine would read the body as the next request.
  return { method, head: `${head}transfer-encoding: chunked\r\n\r\n`, body: "chunked" };
}
