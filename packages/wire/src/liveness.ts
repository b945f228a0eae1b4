export interface LivenessOptions {
  /** Milliseconds between two pings. */
  readonly pingIntervalMs: number;
  /** Milliseconds that a ping may stay unanswered. */
  readonly pingTimeoutMs: number;
}

/** A tunnel's session, whatever it speaks. */
export interface LiveSession {
  readonly isClosed: boolean;
  /** Bytes that came until now, where the session knows: a peer that sends is there, although its answer may wait behind what it sends. */
  readonly received?: number | undefined;
  ping(onAnswer: () => void): void;
  /** At once, with all its calls. */
  destroy(reason: Error): void;
}

/** A peer that vanished without a word is only noticed by asking: TCP alone may take many minutes. @returns a function that ends the asking */
export function watchLiveness(session: LiveSession, options: LivenessOptions): () => void {
  let waiting = false;
  let heard: number | undefined;
  let deadline: NodeJS.Timeout | undefined;
  const answered = (): void => {
    waiting = false;
    clearTimeout(deadline);
  };
  const missed = (): void => {
    if (session.received !== heard) answered();
    else if (waiting) session.destroy(new Error(`the ping was not answered in ${options.pingTimeoutMs} ms`));
  };
  const timer = setInterval(() => {
    if (waiting || session.isClosed) return;
    waiting = true;
    heard = session.received;
    // One turn of the event loop more, so that an answer that lies unread in a busy process still counts.
    deadline = setTimeout(() => setImmediate(missed), options.pingTimeoutMs);
    session.ping(answered);
  }, options.pingIntervalMs);
  return () => {
    clearInterval(timer);
    clearTimeout(deadline);
  };
}
