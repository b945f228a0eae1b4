import { performServerHandshake } from "node:http2";
import { h2Calls } from "./h2-call.ts";
import { cutSession, type LivenessOptions, watchLiveness } from "./liveness.ts";
import type { TunnelHandler } from "./tunnel-call.ts";
import type { TunnelSocket } from "./tunnel-upgrade.ts";

export interface ServeOptions {
  readonly handler: TunnelHandler;
  readonly liveness: LivenessOptions;
  /** Cuts the connection with all its requests. */
  readonly signal: AbortSignal;
}

/** Large enough that one upload is not slowed by a long way to the platform host. */
const REQUEST_WINDOW_BYTES = 1024 * 1024;
const SESSION_WINDOW_BYTES = 8 * 1024 * 1024;
const SESSION_MEMORY_MB = 1024;
const MAX_CONCURRENT_REQUESTS = 65_536;

/** Serves HTTP/2 on one connection until it is lost or cut. @returns why it ended, undefined for a clean end. */
export function serveTunnel(connection: TunnelSocket, options: ServeOptions): Promise<Error | undefined> {
  const { socket, head } = connection;
  const { handler, liveness, signal } = options;
  // HTTP/2 over a socket that has lost its handle would bring the process down.
  if (socket.destroyed) return Promise.resolve(new Error("the connection was lost at once"));
  socket.setNoDelay(true);
  socket.setTimeout(0);
  if (head.length > 0) socket.unshift(head);
  // Not a server's `connection` event: over TLS that wants `h2` by ALPN, which belongs to the request before the upgrade.
  const session = performServerHandshake(socket, {
    settings: {
      initialWindowSize: REQUEST_WINDOW_BYTES,
      maxConcurrentStreams: MAX_CONCURRENT_REQUESTS,
      // WebSockets come as extended CONNECT (RFC 8441).
      enableConnectProtocol: true,
    },
    maxSessionMemory: SESSION_MEMORY_MB,
  });
  session.setLocalWindowSize(SESSION_WINDOW_BYTES);
  session.on("stream", h2Calls(handler));
  watchLiveness(session, socket, liveness);
  const cut = (): void => cutSession(session, new Error("this side closes"));
  signal.addEventListener("abort", cut);
  if (signal.aborted) cut();
  return new Promise((resolve) => {
    let reason: Error | undefined;
    session.on("error", (error) => {
      reason = error;
    });
    session.once("close", () => {
      signal.removeEventListener("abort", cut);
      resolve(reason);
    });
  });
}
