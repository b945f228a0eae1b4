import type { IncomingHttpHeaders } from "node:http";
import { TUNNEL_FAULT_HEADER } from "@fairlead/protocol/daemon-link";
import { DomainError } from "@fairlead/protocol/errors";
import { TunnelCannot } from "../tunnel/tunnel-transport.ts";

/** What the relay says where the workload gave no answer of its own. */

const ENGINE_RETRY_SECONDS = 5;

export function noRunningEngine(): DomainError {
  return new DomainError("no_running_engine", "The engine or agent does not run or cannot be reached just now.", {
    retryAfterSeconds: ENGINE_RETRY_SECONDS,
  });
}

export function brokeOff(cause: unknown): DomainError {
  if (cause instanceof TunnelCannot) {
    const message = "The node's daemon is too old for WebSockets; update it.";
    return new DomainError("upstream_failed", message, { cause, final: true });
  }
  return new DomainError("upstream_failed", "The engine or agent broke off or could not be reached.", { cause });
}

/** @returns what the daemon's gateway answered in its own name, or null for an answer of the workload. */
export function gatewayFault(headers: IncomingHttpHeaders): DomainError | null {
  const fault = headers[TUNNEL_FAULT_HEADER];
  switch (fault) {
    case undefined:
      return null;
    case "no_running_engine":
      return noRunningEngine();
    case "invalid_credential":
    case "expired_credential":
      return new DomainError(fault, "The node itself does not take this token; ask for workload-connect again.");
    case "unavailable":
      return new DomainError("unavailable", "The node cannot check this token just now.", { retryAfterSeconds: 1 });
    default:
      return new DomainError("upstream_failed", "The engine or agent broke off or could not be reached.");
  }
}
