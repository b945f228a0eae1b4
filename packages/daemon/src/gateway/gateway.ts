import type { Logger } from "pino";
import type { TunnelCall, TunnelHandler } from "../tunnel/tunnel-call.ts";
import type { ConnectCheck } from "./connect-check.ts";
import { EngineConnections } from "./engine-connections.ts";
import { engineRequest } from "./engine-request.ts";
import { answerFault } from "./fault-answer.ts";
import { Forward } from "./forward.ts";
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
    const { host, port } = target;
    if (kind !== "web-socket") connections.run(target, new Forward(call, engineRequest(call.request, target)));
    else {
      forwardWebSocket(call, { target: { host, port }, onFault: (code) => answerFault(call, code) });
    }
  } catch (error) {
    // Some paths and header values are refused before anything is sent.
    log.debug({ err: error }, "request cannot be forwarded");
    answerFault(call, "upstream_failed");
  }
}
