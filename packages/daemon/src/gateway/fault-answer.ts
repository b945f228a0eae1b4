import { TUNNEL_FAULT_HEADER } from "@fairlead/protocol/daemon-link";
import type { ErrorCode } from "@fairlead/protocol/errors";
import type { TunnelCall } from "../tunnel/tunnel-call.ts";

const STATUS: Readonly<Partial<Record<ErrorCode, number>>> = {
  invalid_credential: 401,
  expired_credential: 401,
  no_running_engine: 503,
  unavailable: 503,
};

/** An answer of our own, marked so that it is never taken for the engine's. Where there is one already, it does nothing. */
export function answerFault(call: TunnelCall, code: ErrorCode): void {
  if (call.isClosed || call.isAnswered) return;
  call.respond(STATUS[code] ?? 502, { [TUNNEL_FAULT_HEADER]: code });
  call.end();
  // What is still being sent is of no use to anyone.
  call.resume();
}
