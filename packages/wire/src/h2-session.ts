import { constants, type Http2Session } from "node:http2";
import type { Duplex } from "node:stream";
import { type LivenessOptions, watchLiveness } from "./liveness.ts";

/** Cuts the session once its peer is silent for too long, or has closed its side of the connection. */
export function watchH2Session(session: Http2Session, socket: Duplex, options: LivenessOptions): void {
  // A socket that was half-closed by the peer stays open, and HTTP/2 does not look at it.
  socket.once("end", () => cutH2Session(session, new Error("the other side closed the connection")));
  const live = {
    get isClosed() {
      return session.destroyed;
    },
    ping: (onAnswer: () => void) => void session.ping(onAnswer),
    destroy: (reason: Error) => cutH2Session(session, reason),
  };
  session.once("close", watchLiveness(live, options));
}

/** Ends a session at once. Without both the error and the code, Node ends its open streams as if they were complete. */
export function cutH2Session(session: Http2Session, reason: Error): void {
  if (!session.destroyed) session.destroy(reason, constants.NGHTTP2_CANCEL);
}
