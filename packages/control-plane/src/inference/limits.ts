import type { RetryLimits } from "./retry-rules.ts";

/** How long an upstream may take. Milliseconds. */
export interface UpstreamTimeouts {
  /** Until its answer's head. */
  readonly firstByteMs: number;
  /** How long an answer may stay silent, and how long a caller may stop reading. */
  readonly idleMs: number;
  readonly totalMs: number;
}

/** What one inference host allows. Times in milliseconds (design §8). */
export interface InferenceLimits extends UpstreamTimeouts, RetryLimits {
  /** Of one call, decompressed. */
  readonly maxBodyBytes: number;
  /** Bodies held at one time, over all calls. */
  readonly maxBufferedBytes: number;
  readonly maxCallsInFlight: number;
  /** How long a request's head may take to arrive, from the connection's beginning for its first one. */
  readonly headersMs: number;
  /** How long a request may take to arrive whole. */
  readonly uploadMs: number;
  /** Silence of a stream after which a comment is sent. */
  readonly keepAliveMs: number;
  /** How often the times above are looked at. */
  readonly sweepMs: number;
}

export const DEFAULT_LIMITS: InferenceLimits = {
  maxBodyBytes: 32 * 1024 * 1024,
  maxBufferedBytes: 256 * 1024 * 1024,
  maxCallsInFlight: 10_000,
  headersMs: 30_000,
  uploadMs: 300_000,
  firstByteMs: 120_000,
  idleMs: 120_000,
  totalMs: 1_800_000,
  maxAttempts: 4,
  maxRetryWaitMs: 5000,
  keepAliveMs: 15_000,
  sweepMs: 1000,
};
