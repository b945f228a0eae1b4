import { request as httpRequest, type IncomingMessage } from "node:http";
import { TUNNEL_FAULT_HEADER } from "@fairlead/protocol/daemon-link";
import type { ErrorCode } from "@fairlead/protocol/errors";
import type { Logger } from "pino";
import type { TunnelCall, TunnelHandler, TunnelRequest } from "../tunnel/tunnel-call.ts";
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
  return (call) => {
    const { token, workload } = call.request;
    if (token === undefined) {
      handOver(call, options);
      return;
    }
    connect.check(token, workload).then(
      (refusal) => {
        if (refusal === null) handOver(call, options);
        else answerFault(call, refusal);
      },
      (error: unknown) => {
        log.error({ err: error }, "a workload-connect token could not be judged");
        answerFault(call, "unavailable");
      },
    );
  };
}

function handOver(call: TunnelCall, { targets, connections, log }: Required<GatewayOptions>): void {
  if (call.isClosed) return;
  const { kind, workload } = call.request;
  const target = targets.find(workload);
  if (target === null || !target.ready) {
    answerFault(call, "no_running_engine");
    return;
  }
  try {
    if (kind !== "web-socket") forward(call, target, connections);
    else {
      const { host, port } = target;
      forwardWebSocket(call, { target: { host, port }, onFault: (code) => answerFault(call, code) });
    }
  } catch (error) {
    // Node refuses some paths and header values before it sends anything.
    log.debug({ err: error }, "request cannot be forwarded");
    answerFault(call, "upstream_failed");
  }
}

function forward(call: TunnelCall, target: WorkloadTarget, connections: EngineConnections): void {
  const { method, path, headers } = call.request;
  const engine = httpRequest({
    host: target.host,
    port: target.port,
    method,
    path,
    // Told to close, an engine that refuses a large body at once resets the connection, and its refusal is lost.
    headers: { ...requestHeaders(headers), ...framing(call.request), connection: "keep-alive" },
    agent: connections.agentFor(target),
  });
  const forwarded = new Forward(call, engine);
  engine.on("error", (error: NodeJS.ErrnoException) => {
    answerFault(call, error.code === "ECONNREFUSED" ? "no_running_engine" : "upstream_failed");
  });
  engine.on("response", (answer: IncomingMessage) => {
    connections.onAnswer(answer, target);
    forwarded.onAnswer(answer);
  });
}

/** Node frames no body of a GET or DELETE by itself: the engine would read it as the next request. */
function framing({ kind, headers }: TunnelRequest): { readonly "transfer-encoding"?: "chunked" } {
  const framed = kind === "no-body" || headers["content-length"] !== undefined;
  return framed ? {} : { "transfer-encoding": "chunked" };
}

const FAULT_STATUS: Readonly<Partial<Record<ErrorCode, number>>> = {
  invalid_credential: 401,
  expired_credential: 401,
  no_running_engine: 503,
  unavailable: 503,
};

/** An answer of our own, marked so that it is never taken for the engine's. */
function answerFault(call: TunnelCall, code: ErrorCode): void {
  if (call.isClosed || call.isAnswered) return;
  call.respond(FAULT_STATUS[code] ?? 502, { [TUNNEL_FAULT_HEADER]: code });
  call.end();
  // What is still being sent is of no use to anyone.
  call.resume();
}
