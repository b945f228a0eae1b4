import type { Logger } from "pino";
import type { IncomingCall, IncomingCallHandler } from "../tunnel/tunnel-call.ts";
import type { ConnectCheck } from "./connect-check.ts";
import { EngineConnections } from "./engine-connections.ts";
import { engineRequest } from "./engine-request.ts";
import { answerFault } from "./fault-answer.ts";
import { Forward } from "./forward.ts";
import { forwardWebSocket } from "./web-socket.ts";

/** A workload's address on this machine. */
export interface WorkloadTarget {
  readonly host: string;
  readonly port: number;
  readonly ready: boolean;
}

/** Updated by the reconcile loop. */
export interface WorkloadTargets {
  /** @returns null for an unknown workload. */
  find(name: string): WorkloadTarget | null;
}

export interface GatewayOptions {
  readonly targets: WorkloadTargets;
  /** Checks the tokens of relayed requests. */
  readonly connect: Pick<ConnectCheck, "check">;
  readonly connections?: EngineConnections;
  readonly log: Logger;
}

/** The reverse proxy in front of this node's workloads. */
export function createGateway({
  connections = new EngineConnections(),
  ...others
}: GatewayOptions): IncomingCallHandler {
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
        log.error({ err: error }, "could not check a workload-connect token");
        answerFault(call, "unavailable");
      },
    );
  };
}

function handOver(call: IncomingCall, { targets, connections, log }: Required<GatewayOptions>): void {
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
    // Some paths and header values are rejected before anything is sent.
    log.debug({ err: error }, "could not forward a request");
    answerFault(call, "upstream_failed");
  }
}
