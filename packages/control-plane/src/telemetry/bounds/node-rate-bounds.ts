import type { BucketSize } from "@fairlead/protocol/values/token-bucket";

/**
 * Rate limits per node. Normal daemons stay far below: they send at most two observations per second, fetch secrets one
 * at a time, and reconnect with backoff.
 */
export const NODE_RATES = {
  hello: { capacity: 20, perSecond: 0.5 },
  heartbeat: { capacity: 20, perSecond: 2 },
  observe: { capacity: 30, perSecond: 3 },
  /** Counts events, not calls: a daemon may send a full queue after an outage. */
  events: { capacity: 2000, perSecond: 2 },
  secret: { capacity: 500, perSecond: 10 },
  workerToken: { capacity: 500, perSecond: 10 },
  desiredState: { capacity: 20, perSecond: 0.5 },
  ready: { capacity: 30, perSecond: 3 },
  enroll: { capacity: 20, perSecond: 0.2 },
  identityToken: { capacity: 20, perSecond: 0.2 },
  /** Messages, pings and pongs; each call of a batch counts. */
  frames: { capacity: 2000, perSecond: 50 },
  bytes: { capacity: 8 * 1024 * 1024, perSecond: 256 * 1024 },
  /** Rejected calls. A node that keeps sending them is disconnected. */
  rejected: { capacity: 200, perSecond: 1 },
  /** Lines in our log. */
  logged: { capacity: 20, perSecond: 0.1 },
} as const satisfies Record<string, BucketSize>;

export type NodeRateKind = keyof typeof NODE_RATES;

/** Unread bytes that a daemon may leave buffered here. */
export const MAX_UNREAD_BYTES = 4 * 1024 * 1024;

/** Less than fits into one report, with room for agents that are stopping. */
export const MAX_AGENTS_PER_NODE = 200;
