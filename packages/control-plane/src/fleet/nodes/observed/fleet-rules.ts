/**
 * Decides when a silent node is lost, and when the server's own network is suspected (decisions/0026). Times are
 * monotonic milliseconds.
 */

export interface FleetRules {
  /** Missed heartbeats after which a node is unreachable. */
  readonly missedBeats: number;
  /** If more than this share of at least `brakeNodes` nodes goes silent together, we suspect our own network (gpustack/gpustack#5935). */
  readonly brakeShare: number;
  readonly brakeNodes: number;
  /** How long to wait at most while other nodes are heard; then the silent ones are lost. */
  readonly brakeMs: number;
}

/** A node that should send heartbeats. */
export interface WatchedNode {
  readonly id: string;
  /** Null: not heard since the server started. */
  readonly heardAt: number | null;
  /** The heartbeat interval sent to its daemon. */
  readonly intervalMs: number;
}

export interface FleetState {
  readonly judgedAt: number;
  /** Nodes not heard since then get time to return: after a start, a stall, or the end of the brake. */
  readonly graceFrom: number;
  /** Since when status changes are suspended. */
  readonly brakedAt: number | null;
}

export interface Judgement {
  readonly state: FleetState;
  /** Nodes to mark unreachable. */
  readonly lost: readonly string[];
  /** Number of nodes that missed a heartbeat. */
  readonly overdue: number;
}

/** Twice the time in which a whole fleet reconnects after a restart, given the daemon's backoff. */
export const RETURN_MS = 120_000;
/** Checks run every two seconds. After a gap this long, the server itself was stalled and has unread messages. */
export const STALL_MS = 10_000;
/** A heartbeat that is late by half an interval counts as missed. */
const OVERDUE_INTERVALS = 1.5;

export function firstFleetState(now: number): FleetState {
  return { judgedAt: now, graceFrom: now, brakedAt: null };
}

/**
 * Checks the whole fleet. Heartbeats are spread over the interval, so nodes that fail together exceed their grace one
 * by one. The brake therefore counts nodes with one missed heartbeat, long before the first is lost.
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
    // A server that keeps hearing some nodes has a working network.
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
