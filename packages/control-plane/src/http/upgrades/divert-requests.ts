import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { headFault } from "@fairlead/hosting/requests/request-head";

/** Requests that pass by the framework: their paths stay as they were sent, any method goes, and their bodies have no limit. */
export interface RequestDiversion {
  takes(request: IncomingMessage): boolean;
  handle(request: IncomingMessage, response: ServerResponse): void;
}

/** How long requests may take to arrive. */
export interface RequestTimes {
  /** From the opening of the connection, or the last response on it. */
  readonly headersMs: number;
  /** Of the requests that are not diverted. */
  readonly bodyMs: number;
}

/** Call before anything else listens for the server's requests. */
export function divertRequests(server: Server, diversion: RequestDiversion, times: RequestTimes): void {
  const framework = server.listeners("request");
  server.removeAllListeners("request");
  // Node knows one time limit for all; a streamed upload has none.
  server.requestTimeout = 0;
  server.headersTimeout = times.headersMs;
  server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    // The framework refuses what is wrong with a head.
    if (diversion.takes(request) && headFault(request) === null) {
      diversion.handle(request, response);
      return;
    }
    limitBodyTime(server, request, times.bodyMs);
    for (const listener of framework) listener.call(server, request, response);
  });
}

/** As Node does it for a whole server. */
function limitBodyTime(server: Server, request: IncomingMessage, ms: number): void {
  const { "content-length": length, "transfer-encoding": encoding } = request.headers;
  if (encoding === undefined && (length === undefined || length === "0")) return;
  const timer = setTimeout(() => {
    if (request.complete) return;
    const error = Object.assign(new Error("the request took too long"), { code: "ERR_HTTP_REQUEST_TIMEOUT" });
    server.emit("clientError", error, request.socket);
  }, ms);
  timer.unref();
  const clear = (): void => clearTimeout(timer);
  request.once("end", clear);
  request.once("close", clear);
}
