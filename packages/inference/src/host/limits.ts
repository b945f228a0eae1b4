import type { RetryLimits } from "../routing/retry-rules.ts";

/** Timeouts for upstreams in milliseconds. */
export interface UpstreamTimeouts {
  /** Until the response head. */
  readonly firstByteMs: number;
  /** Maximum silence of a response, and maximum pause of a client's reads. */
  readonly idleMs: number;
  readonly totalMs: number;
}

/** Limits of an inference host. Times in milliseconds. */
export interface InferenceLimits extends UpstreamTimeouts, RetryLimits {
  /** Per call, after decompression. */
  readonly maxBodyBytes: number;
  /** Total of all request bodies in memory. */
  readonly maxBufferedBytes: number;
  readonly maxCallsInFlight: number;
  /** Maximum fraction (0 to 1) of both that one owner's projects may use when no other owner needs any. */
  readonly ownerShare: number;
  /** Timeout of request headers, from the start of the connection for its first request. */
  readonly headersMs: number;
  /** Timeout of the whole request. */
  readonly uploadMs: number;
  /** Minimum upload rate, averaged over ten seconds. */
  readonly minUploadBytesPerSecond: number;
  /** Silence of a stream after which a keep-alive comment is sent. */
  readonly keepAliveMs: number;
  /** Interval of timeout checks. */
  readonly sweepMs: number;
}

export const DEFAULT_LIMITS: InferenceLimits = {
  maxBodyBytes: 32 * 1024 * 1024,
  maxBufferedBytes: 256 * 1024 * 1024,
  maxCallsInFlight: 10_000,
  ownerShare: 0.75,
  headersMs: 30_000,
  uploadMs: 300_000,
  minUploadBytesPerSecond: 16 * 1024,
  firstByteMs: 120_000,
  idleMs: 120_000,
  totalMs: 1_800_000,
  maxAttempts: 4,
  maxRetryWaitMs: 5000,
  keepAliveMs: 15_000,
  sweepMs: 1000,
};
