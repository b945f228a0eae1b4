import type { Http2Session } from "node:http2";
import { constants } from "node:http2";
import type { Duplex } from "node:stream";

export interface LivenessOptions {
  /** Milliseconds between two pings. */
  readonly pingIntervalMs: number;
  /** Milliseconds that a ping may stay unanswered. */
  readonly pingTimeoutMs: number;
}

/** A peer that vanished without a word is only noticed by asking: TCP alone may take many minutes. */
export function watchLiveness(session: Http2Session, socket: Duplex, options: LivenessOptions): void {
  // A socket that was half-closed by the peer stays open, and HTTP/2 does not look at it.
  socket.once("end", () => cutSession(session, new Error("the other side closed the connection")));
  let waiting = false;
  let deadline: NodeJS.Timeout | undefined;
  const answered = (): void => {
    waiting = false;
    clearTimeout(deadline);
  };
  const missed = (): void => {
    if (waiting) cutSession(session, new Error(`the ping was not answered in ${options.pingTimeoutMs} ms`));
  };
  const timer = setInterval(() => {
    if (waiting || session.destroyed) return;
    waiting = true;
    // One turn of the event loop more, so that an answer that lies unread in a busy process still counts.
    deadline = setTimeout(() => setImmediate(missed), options.pingTimeoutMs);
    session.ping(answered);
  }, options.pingIntervalMs);
  session.once("close", () => {
    clearInterval(timer);
    clearTimeout(deadline);
  });
}

/** Ends a session at once. Without both the error and the code, Node ends its open streams as if they were complete. */
export function cutSession(session: Http2Session, reason: Error): void {
  if (!session.destroyed) session.destroy(reason, constants.NGHTTP2_CANCEL);
}
