/** The only reader of time. Everything else takes a `Clock`, so that tests can move it. */
export interface Clock {
  /** Unix milliseconds; may jump. For what people and other machines read. */
  now(): number;
  /** Milliseconds that only grow. For lifetimes and time-outs. */
  monotonic(): number;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
};

/** RFC 3339, UTC, milliseconds: the form of every time on the wire. */
export function rfc3339(unixMilliseconds: number): string {
  return new Date(unixMilliseconds).toISOString();
}
