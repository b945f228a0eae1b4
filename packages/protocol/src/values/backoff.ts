/** Full-jitter backoff: a delay between zero and `base × 2^attempt`, never above `max`. */
export interface BackoffOptions {
  readonly baseMs: number;
  readonly maxMs: number;
}

/** @param attempt from 0. @param random in [0, 1). @returns milliseconds to wait. */
export function fullJitter(options: BackoffOptions, attempt: number, random: number): number {
  return Math.floor(random * ceiling(options, attempt));
}

/** The maximum delay: `base × 2^attempt` up to `max`, in milliseconds. */
export function ceiling(options: BackoffOptions, attempt: number): number {
  return Math.min(options.maxMs, options.baseMs * 2 ** Math.min(attempt, 30));
}

/** Bounds of the jitter added to a `Retry-After`, which is otherwise as long as the delay itself. */
const TOLD_SPREAD = { leastMs: 1000, mostMs: 10_000 };

/** @param toldMs the `Retry-After` delay, used as the minimum. @param random in [0, 1). @returns milliseconds to wait. */
export function afterTold(toldMs: number, random: number): number {
  const spread = Math.min(TOLD_SPREAD.mostMs, Math.max(TOLD_SPREAD.leastMs, toldMs));
  return Math.floor(toldMs + random * spread);
}
