import { performServerHandshake } from "node:http2";
import type { Socket } from "node:net";
import { cutH2Session, watchH2Session } from "@fairlead/wire/h2-session";
import { type LivenessOptions, watchLiveness } from "@fairlead/wire/liveness";
import { YamuxSession } from "@fairlead/wire/yamux/session";
import { h2Calls } from "./h2-call.ts";
import type { TunnelHandler } from "./tunnel-call.ts";
import type { TunnelSocket } from "./tunnel-upgrade.ts";
import { takeYamuxCall } from "./yamux-call.ts";

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

/** Answers what comes over one connection until it is lost or cut. @returns why it ended, undefined for a clean end. */
export function serveTunnel(connection: TunnelSocket, options: ServeOptions): Promise<Error | undefined> {
  const { socket, head, protocol } = connection;
  // HTTP/2 over a socket that has lost its handle would bring the process down.
  if (socket.destroyed) return Promise.resolve(new Error("the connection was lost at once"));
  socket.setNoDelay(true);
  socket.setTimeout(0);
  if (head.length > 0) socket.unshift(head);
  const { signal } = options;
  return new Promise((resolve) => {
    const destroy = OPEN[protocol](socket, options, (reason) => {
      signal.removeEventListener("abort", cut);
      resolve(reason);
    });
    const cut = (): void => destroy(new Error("this side closes"));
    signal.addEventListener("abort", cut);
    if (signal.aborted) cut();
  });
}

/** @returns a function that ends the session at once, with all its calls. */
type OpenSession = (
  socket: Socket,
  options: ServeOptions,
  onClose: (reason: Error | undefined) => void,
) => (reason: Error) => void;

const OPEN: Readonly<Record<TunnelSocket["protocol"], OpenSession>> = { h2: openH2, yamux: openYamux };

function openYamux(...[socket, { handler, liveness }, onClose]: Parameters<OpenSession>): ReturnType<OpenSession> {
  const session = new YamuxSession({
    socket,
    onStream: (stream) => takeYamuxCall(stream, handler),
    onClose: (reason) => {
      endWatch();
      onClose(reason);
    },
  });
  const endWatch = watchLiveness(session, liveness);
  return (reason) => session.destroy(reason);
}

function openH2(...[socket, { handler, liveness }, onClose]: Parameters<OpenSession>): ReturnType<OpenSession> {
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
  watchH2Session(session, socket, liveness);
  let reason: Error | undefined;
  session.on("error", (error) => {
    reason = error;
  });
  session.once("close", () => onClose(reason));
  return (cause) => cutH2Session(session, cause);
}
