import type { Clock } from "@fairlead/protocol/values/clock";
import { type LivenessOptions, watchLiveness } from "@fairlead/wire/liveness";
import { YamuxSession } from "@fairlead/wire/yamux/session";
import type { IncomingCallHandler } from "./tunnel-call.ts";
import type { TunnelSocket } from "./tunnel-upgrade.ts";
import { takeYamuxCall } from "./yamux-call.ts";

export interface ServeOptions {
  readonly handler: IncomingCallHandler;
  readonly liveness: LivenessOptions;
  readonly clock: Pick<Clock, "monotonic">;
  /** Closes the connection and aborts its requests. */
  readonly signal: AbortSignal;
}

/** Serves requests on one connection until it closes. @returns why it ended; undefined for a clean end. */
export function serveTunnel({ socket, head }: TunnelSocket, options: ServeOptions): Promise<Error | undefined> {
  // A closed socket emits no further `close`.
  if (socket.destroyed) return Promise.resolve(new Error("the connection was lost immediately"));
  socket.setNoDelay(true);
  socket.setTimeout(0);
  if (head.length > 0) socket.unshift(head);
  const { handler, liveness, clock, signal } = options;
  return new Promise((resolve) => {
    const session = new YamuxSession({
      socket,
      clock,
      onStream: (stream) => takeYamuxCall(stream, handler),
      onClose: (reason) => {
        endWatch();
        signal.removeEventListener("abort", cut);
        resolve(reason);
      },
    });
    const endWatch = watchLiveness(session, liveness);
    const cut = (): void => session.destroy(new Error("closed by this side"));
    signal.addEventListener("abort", cut);
    if (signal.aborted) cut();
  });
}
