import type { TunnelHandler, TunnelStreamCall } from "./tunnel-transport.ts";

/** A call on a tunnel that is gone: fails after the caller has it in hand. */
export function lostCall(handler: TunnelHandler, error: Error): TunnelStreamCall {
  let aborted = false;
  setImmediate(() => {
    if (!aborted) handler.onError(error);
  });
  return {
    write: () => true,
    end: () => undefined,
    resume: () => undefined,
    abort: () => {
      aborted = true;
    },
  };
}
