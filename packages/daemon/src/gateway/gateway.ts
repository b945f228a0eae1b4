import { request as httpRequest, type IncomingMessage } from "node:http";
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { TUNNEL_FAULT_HEADER, TUNNEL_TOKEN_HEADER, TUNNEL_WORKLOAD_HEADER } from "@fairlead/protocol/daemon-link";
import type { ErrorCode } from "@fairlead/protocol/errors";
import type { Logger } from "pino";
import type { TunnelHandler } from "../tunnel/tunnel-server.ts";
import type { ConnectCheck } from "./connect-check.ts";
import { EngineConnections } from "./engine-connections.ts";
import { Forward } from "./forward.ts";
import { requestHeaders } from "./gateway-headers.ts";
import { forwardWebSocket } from "./web-socket.ts";

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
  /** Judges the tokens of relayed requests. */
  readonly connect: Pick<ConnectCheck, "check">;
  readonly connections?: EngineConnections;
  readonly log: Logger;
}

/** The reverse proxy in front of this node's workloads. */
export function createGateway({ connections = new EngineConnections(), ...others }: GatewayOptions): TunnelHandler {
  const options = { connections, ...others };
  const { connect, log } = options;
  return (stream, headers) => {
    stream.on("error", (error) => log.debug({ err: error }, "tunnel stream failed"));
    const workload = String(headers[TUNNEL_WORKLOAD_HEADER]);
    const token = headers[TUNNEL_TOKEN_HEADER];
    if (token === undefined) {
      handOver({ stream, headers, workload }, options);
      return;
    }
    connect.check(String(token), workload).then(
      (refusal) => {
        if (refusal === null) handOver({ stream, headers, workload }, options);
        else answerFault(stream, refusal);
      },
      (error: unknown) => {
        log.error({ err: error }, "a workload-connect token could not be judged");
        answerFault(stream, "unavailable");
      },
    );
  };
}

interface GatewayCall {
  readonly stream: ServerHttp2Stream;
  readonly headers: IncomingHttpHeaders;
  readonly workload: string;
}

function handOver(call: GatewayCall, { targets, connections, log }: Required<GatewayOptions>): void {
  const { stream, headers, workload } = call;
  if (stream.destroyed) return;
  const target = targets.find(workload);
  if (target === null || !target.ready) {
    answerFault(stream, "no_running_engine");
    return;
  }
  try {
    if (headers[":method"] !== "CONNECT") forward(call, target, connections);
    else if (headers[":protocol"] !== "websocket") answerFault(stream, "upstream_failed");
    else {
      const { host, port } = target;
      forwardWebSocket({ stream, headers, target: { host, port }, onFault: (code) => answerFault(stream, code) });
    }
  } catch (error) {
    // Node refuses some paths and header values before it sends anything.
    log.debug({ err: error }, "request cannot be forwarded");
    answerFault(stream, "upstream_failed");
  }
}

function forward({ stream, headers }: GatewayCall, target: WorkloadTarget, connections: EngineConnections): void {
  const engine = httpRequest({
    host: target.host,
    port: target.port,
    method: headers[":method"] ?? "GET",
    path: headers[":path"] ?? "/",
    // Told to close, an engine that refuses a large body at once resets the connection, and its refusal is lost.
    headers: { ...requestHeaders(headers), ...framing(stream, headers), connection: "keep-alive" },
    agent: connections.agentFor(target),
  });
  const call = new Forward(stream, engine);
  engine.on("error", (error: NodeJS.ErrnoException) => {
    if (stream.headersSent || stream.destroyed) return;
    answerFault(stream, error.code === "ECONNREFUSED" ? "no_running_engine" : "upstream_failed");
  });
  engine.on("response", (answer: IncomingMessage) => {
    connections.onAnswer(answer, target);
    call.onAnswer(answer);
  });
}

/** Node frames no body of a GET or DELETE by itself: the engine would read it as the next request. */
function framing(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
): { readonly "transfer-encoding"?: "chunked" } {
  const framed = stream.endAfterHeaders || headers["content-length"] !== undefined;
  return framed ? {} : { "transfer-encoding": "chunked" };
}

const FAULT_STATUS: Readonly<Partial<Record<ErrorCode, number>>> = {
  invalid_credential: 401,
  expired_credential: 401,
  no_running_engine: 503,
  unavailable: 503,
};

/** An answer of our own, marked so that it is never taken for the engine's. */
function answerFault(stream: ServerHttp2Stream, code: ErrorCode): void {
  if (stream.destroyed || stream.headersSent) return;
  const status = FAULT_STATUS[code] ?? 502;
  stream.respond({ ":status": status, [TUNNEL_FAULT_HEADER]: code }, { endStream: true });
  // What is still being sent is of no use to anyone.
  stream.resume();
}
