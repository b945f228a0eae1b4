import {
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import { cutSession, type LivenessOptions, watchLiveness } from "./liveness.ts";
import type { TunnelSocket } from "./tunnel-upgrade.ts";

/** Handles one request that came through the tunnel. */
export type TunnelHandler = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;

/** Large enough that one upload is not slowed by a long way to the platform host. */
const REQUEST_WINDOW_BYTES = 1024 * 1024;
const SESSION_WINDOW_BYTES = 8 * 1024 * 1024;
const SESSION_MEMORY_MB = 1024;
const MAX_CONCURRENT_REQUESTS = 65_536;

/** The HTTP/2 server inside the tunnel; it never listens. */
export class TunnelServer {
  readonly #server: Http2Server;
  readonly #liveness: LivenessOptions;

  constructor(handler: TunnelHandler, liveness: LivenessOptions) {
    this.#liveness = liveness;
    this.#server = createServer({
      settings: { initialWindowSize: REQUEST_WINDOW_BYTES, maxConcurrentStreams: MAX_CONCURRENT_REQUESTS },
      maxSessionMemory: SESSION_MEMORY_MB,
    });
    this.#server.on("stream", handler);
    this.#server.on("sessionError", () => undefined);
  }

  /** Serves one connection until it is lost or the signal cuts it. @returns why it ended, undefined for a clean end. */
  serve(connection: TunnelSocket, signal: AbortSignal): Promise<Error | undefined> {
    const { socket, head } = connection;
    // HTTP/2 over a socket that has lost its handle would bring the process down.
    if (socket.destroyed) return Promise.resolve(new Error("the connection was lost at once"));
    return new Promise((resolve) => {
      this.#server.once("session", (session: ServerHttp2Session) => {
        let reason: Error | undefined;
        const cut = (): void => cutSession(session, new Error("this side closes"));
        session.on("error", (error) => {
          reason = error;
        });
        session.once("close", () => {
          signal.removeEventListener("abort", cut);
          resolve(reason);
        });
        session.setLocalWindowSize(SESSION_WINDOW_BYTES);
        watchLiveness(session, socket, this.#liveness);
        signal.addEventListener("abort", cut);
        if (signal.aborted) cut();
      });
      socket.setNoDelay(true);
      socket.setTimeout(0);
      if (head.length > 0) socket.unshift(head);
      // The server, not `performServerHandshake`: only so do requests reach the handler.
      this.#server.emit("connection", socket);
    });
  }
}
