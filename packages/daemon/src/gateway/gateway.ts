import { request as httpRequest, type IncomingMessage } from "node:http";
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { TUNNEL_FAULT_HEADER, TUNNEL_WORKLOAD_HEADER } from "@fairlead/protocol/daemon-link";
import type { ErrorCode } from "@fairlead/protocol/errors";
import type { Logger } from "pino";
import type { TunnelHandler } from "../tunnel/tunnel-server.ts";
import { Forward } from "./forward.ts";
import { requestHeaders } from "./gateway-headers.ts";

/** Where a workload listens on this machine. */
export interface WorkloadTarget {
  readonly host: string;
  readonly port: number;
  readonly ready: boolean;
}

/** Kept up to date by the reconcile loop. */
export interface WorkloadTargets {
  /** @returns null for a name that this node does not run. */
  find(name: string): WorkloadTarget | null;
}

export interface GatewayOptions {
  readonly targets: WorkloadTargets;
  readonly log: Logger;
}

/** The reverse proxy in front of this node's workloads. */
export function createGateway(options: GatewayOptions): TunnelHandler {
  const { targets, log } = options;
  return (stream, headers) => {
    stream.on("error", (error) => log.debug({ err: error }, "tunnel stream failed"));
    const name = headers[TUNNEL_WORKLOAD_HEADER];
    const target = typeof name === "string" ? targets.find(name) : null;
    if (target === null || !target.ready) {
      answerFault(stream, "no_running_engine");
      return;
    }
    try {
      forward(stream, headers, target);
    } catch (error) {
      // Node refuses some paths and header values before it sends anything.
      log.debug({ err: error }, "request cannot be forwarded");
      answerFault(stream, "upstream_failed");
    }
  };
}

function forward(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, target: WorkloadTarget): void {
  const engine = httpRequest({
    host: target.host,
    port: target.port,
    method: headers[":method"] ?? "GET",
    path: headers[":path"] ?? "/",
    headers: requestHeaders(headers),
    // A socket is never used twice: llama-server closes after every stream although it promises to keep it open.
    agent: false,
  });
  const call = new Forward(stream, engine);
  engine.on("error", (error: NodeJS.ErrnoException) => {
    if (stream.headersSent || stream.destroyed) return;
    answerFault(stream, error.code === "ECONNREFUSED" ? "no_running_engine" : "upstream_failed");
  });
  engine.on("response", (answer: IncomingMessage) => call.onAnswer(answer));
}

/** An answer of our own, marked so that it is never taken for the engine's. */
function answerFault(stream: ServerHttp2Stream, code: ErrorCode): void {
  if (stream.destroyed || stream.headersSent) return;
  const status = code === "no_running_engine" ? 503 : 502;
  stream.respond({ ":status": status, [TUNNEL_FAULT_HEADER]: code }, { endStream: true });
  // What is still being sent is of no use to anyone.
  stream.resume();
}
