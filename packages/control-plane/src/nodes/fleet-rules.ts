/** When a silent node is lost, and when we rather doubt ourselves (design §6). Times are milliseconds of our monotonic clock. */

export interface FleetRules {
  /** Missed heartbeats after which a node is unreachable. */
  readonly missedBeats: number;
  /** When more than this share of at least `brakeNodes` nodes goes quiet together, we suspect ourselves (gpustack/gpustack#5935). */
  readonly brakeShare: number;
  readonly brakeNodes: number;
  /** For how long at most, as long as others are heard: then who is quiet is lost indeed. */
  readonly brakeMs: number;
}

/** A node whose daemon is expected to be heard. */
export interface WatchedNode {
  readonly id: string;
  /** Null: not since this server started. */
  readonly heardAt: number | null;
  /** How often its daemon was told to send a heartbeat. */
  readonly intervalMs: number;
}

export interface FleetState {
  readonly judgedAt: number;
  /** Whoever was not heard since has the time to come back: from our start, a stall, or the end of the brake. */
  readonly graceFrom: number;
  /** Since when no status is changed. */
  readonly brakedAt: number | null;
}

export interface Judgement {
  readonly state: FleetState;
  /** To be marked unreachable. */
  readonly lost: readonly string[];
  /** How many have missed a heartbeat. */
  readonly overdue: number;
}

/** Twice what a whole fleet takes to come back after a restart; the daemon's back-off is made for that. */
export const RETURN_MS = 120_000;
/** Looks are two seconds apart: after a gap of this length we stood still ourselves, and what was sent meanwhile lies unread. */
export const STALL_MS = 10_000;
/** A heartbeat that is late by half an interval was missed. */
const OVERDUE_INTERVALS = 1.5;

export function firstFleetState(now: number): FleetState {
  return { judgedAt: now, graceFrom: now, brakedAt: null };
}

/**
 * Looks at the whole fleet. Heartbeats come spread over their interval, so nodes that fall silent in one moment pass their grace one
 * by one: the brake counts who missed one heartbeat, well before the first of them is lost.
 */
export function judgeFleet(
  before: FleetState,
  nodes: readonly WatchedNode[],
  { now, rules }: { readonly now: number; readonly rules: FleetRules },
): Judgement {
  const graceFrom = now - before.judgedAt > STALL_MS ? now : before.graceFrom;
  const state = { ...before, judgedAt: now, graceFrom };
  const overdue = nodes.filter((node) => silence(node, graceFrom, now) > overdueAfter(node, graceFrom)).length;
  const lost = (): string[] =>
    nodes.filter((node) => silence(node, graceFrom, now) > lostAfter(node, graceFrom, rules)).map(({ id }) => id);
  if (overdue >= rules.brakeNodes && overdue > nodes.length * rules.brakeShare) {
    const brakedAt = before.brakedAt ?? now;
    // A server that hears some all along is not deaf.
    const theyAreGone = now - brakedAt >= rules.brakeMs && overdue < nodes.length;
    if (!theyAreGone) return { state: { ...state, brakedAt }, lost: [], overdue };
    return { state: { ...state, brakedAt: null }, lost: lost(), overdue };
  }
  if (before.brakedAt !== null) return { state: { ...state, graceFrom: now, brakedAt: null }, lost: [], overdue };
  return { state, lost: lost(), overdue };
}

function silence({ heardAt }: WatchedNode, graceFrom: number, now: number): number {
  return now - Math.max(heardAt ?? graceFrom, graceFrom);
}

function isBack({ heardAt }: WatchedNode, graceFrom: number): boolean {
  return heardAt !== null && heardAt >= graceFrom;
}

function overdueAfter(node: WatchedNode, graceFrom: number): number {
  return isBack(node, graceFrom) ? node.intervalMs * OVERDUE_INTERVALS : RETURN_MS;
}

function lostAfter(node: WatchedNode, graceFrom: number, { missedBeats }: FleetRules): number {
  const grace = node.intervalMs * missedBeats;
  return isBack(node, graceFrom) ? grace : Math.max(grace, RETURN_MS);
}
