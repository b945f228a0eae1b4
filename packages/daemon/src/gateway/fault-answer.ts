import { TUNNEL_FAULT_HEADER } from "@fairlead/protocol/daemon-link";
import type { ErrorCode } from "@fairlead/protocol/errors";
import type { IncomingCall } from "../tunnel/tunnel-call.ts";

const STATUS: Readonly<Partial<Record<ErrorCode, number>>> = {
  invalid_credential: 401,
  expired_credential: 401,
  no_running_engine: 503,
  unavailable: 503,
};

/** Sends the gateway's own error response, marked as such. Does nothing if a response has started. */
export function answerFault(call: IncomingCall, code: ErrorCode): void {
  if (call.isClosed || call.isAnswered) return;
  call.respond(STATUS[code] ?? 502, { [TUNNEL_FAULT_HEADER]: code });
  call.end();
  // Discard the rest of the request.
  call.resume();
}
