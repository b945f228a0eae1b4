import type { IncomingHttpHeaders } from "node:http";
import { TUNNEL_FAULT_HEADER } from "@fairlead/protocol/daemon-link";
import { DomainError } from "@fairlead/protocol/errors";
import { rfc3339 } from "@fairlead/protocol/values/clock";

/** Errors of the relay if the workload did not respond. */

const ENGINE_RETRY_SECONDS = 5;

/** The daemon knows earlier than the server. */
function notRunning(): DomainError {
  return new DomainError("no_running_engine", "The engine or agent is starting or restarting.", {
    retryAfterSeconds: ENGINE_RETRY_SECONDS,
  });
}

/** @param since Unix milliseconds; null if not connected since the server started. */
export function daemonAway(since: number | null): DomainError {
  const when = since === null ? "is not connected" : `has not been connected since ${rfc3339(since)}`;
  const message = `The daemon of this node ${when}. The engine or agent may still be running.`;
  return new DomainError("no_running_engine", message, { retryAfterSeconds: ENGINE_RETRY_SECONDS });
}

export function workloadBrokeOff(cause: unknown): DomainError {
  return new DomainError(
    "upstream_failed",
    "The engine or agent could not be reached or closed the connection too early.",
    { cause },
  );
}

/** @returns the gateway's own error, or null for a response of the workload. */
export function gatewayFault(headers: IncomingHttpHeaders): DomainError | null {
  const fault = headers[TUNNEL_FAULT_HEADER];
  switch (fault) {
    case undefined:
      return null;
    case "no_running_engine":
      return notRunning();
    case "invalid_credential":
    case "expired_credential":
      return new DomainError(fault, "The node rejected this token. Call workload-connect again.");
    case "unavailable":
      return new DomainError("unavailable", "The node cannot check this token at the moment.", {
        retryAfterSeconds: 1,
      });
    default:
      return new DomainError(
        "upstream_failed",
        "The engine or agent could not be reached or closed the connection too early.",
      );
  }
}
