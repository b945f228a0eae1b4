export interface LivenessOptions {
  /** Milliseconds between pings. */
  readonly pingIntervalMs: number;
  /** Milliseconds to wait for a pong. */
  readonly pingTimeoutMs: number;
}

/** Timeout for a peer that reads nothing, even if it answers pings. */
const STALLED_MS = 60_000;

/** The peer keeps its connection open but reads nothing. */
export class PeerStalled extends Error {
  override readonly name = "PeerStalled";
}

/** Session of a tunnel. */
export interface LiveSession {
  readonly isClosed: boolean;
  /** Bytes received so far: a peer that sends is alive even if its pong is queued behind other data. */
  readonly received: number;
  /** Whether bytes are queued for sending. */
  readonly isCongested: boolean;
  /** How often the send queue was emptied. */
  readonly drains: number;
  ping(onAnswer: () => void): void;
  /** Aborts the session and all its calls immediately. */
  destroy(reason: Error): void;
}

/** Detects vanished peers with pings, because TCP alone may take many minutes. @returns a function that stops the pings */
export function watchLiveness(session: LiveSession, options: LivenessOptions): () => void {
  let waiting = false;
  let heard: number | undefined;
  let deadline: NodeJS.Timeout | undefined;
  let stalledMs = 0;
  let drains = session.drains;
  const isStalled = (): boolean => {
    const isStuck = session.isCongested && session.drains === drains;
    drains = session.drains;
    stalledMs = isStuck ? stalledMs + options.pingIntervalMs : 0;
    return stalledMs > STALLED_MS;
  };
  const answered = (): void => {
    waiting = false;
    clearTimeout(deadline);
  };
  const missed = (): void => {
    if (session.received !== heard) answered();
    else if (waiting) session.destroy(new Error(`the ping was not answered in ${options.pingTimeoutMs} ms`));
  };
  const timer = setInterval(() => {
    if (session.isClosed) return;
    if (isStalled()) {
      session.destroy(new PeerStalled(`nothing was read for ${STALLED_MS} ms`));
      return;
    }
    if (waiting) return;
    waiting = true;
    heard = session.received;
    // One more turn of the event loop, so that a pong that is received but not yet read in a busy process still counts.
    deadline = setTimeout(() => setImmediate(missed), options.pingTimeoutMs);
    session.ping(answered);
  }, options.pingIntervalMs);
  return () => {
    clearInterval(timer);
    clearTimeout(deadline);
  };
}
