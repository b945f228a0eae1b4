import type { NodeStatus } from "@fairlead/protocol/resources";

/** The life of a node as a pure state machine (design §4). `docs/node-status.md` is generated from this table. */

export const NODE_STATUS_EVENTS = [
  "bootstrap_token_issued",
  "enrolled",
  "reported_ready",
  "reported_not_ready",
  "went_quiet",
  "drain_requested",
  "drained",
  "resume_requested",
  "provisioning_failed",
  "delete_requested",
] as const;
export type NodeStatusEvent = (typeof NODE_STATUS_EVENTS)[number];

type Row = Readonly<Partial<Record<NodeStatusEvent, NodeStatus>>>;

/** A re-installed machine enrols anew from wherever its node stood, so `enrolled` leads on from every living state. */
const TRANSITIONS: Readonly<Record<NodeStatus, Row>> = {
  provisioning: {
    bootstrap_token_issued: "bootstrapping",
    enrolled: "starting",
    provisioning_failed: "failed",
    delete_requested: "deleting",
  },
  bootstrapping: { enrolled: "starting", provisioning_failed: "failed", delete_requested: "deleting" },
  starting: {
    reported_ready: "active",
    went_quiet: "unreachable",
    drain_requested: "draining",
    delete_requested: "deleting",
  },
  active: {
    enrolled: "starting",
    reported_not_ready: "degraded",
    went_quiet: "unreachable",
    drain_requested: "draining",
    delete_requested: "deleting",
  },
  degraded: {
    enrolled: "starting",
    reported_ready: "active",
    went_quiet: "unreachable",
    drain_requested: "draining",
    delete_requested: "deleting",
  },
  unreachable: {
    enrolled: "starting",
    reported_ready: "active",
    reported_not_ready: "degraded",
    drain_requested: "draining",
    delete_requested: "deleting",
  },
  draining: { enrolled: "starting", drained: "drained", resume_requested: "starting", delete_requested: "deleting" },
  drained: { enrolled: "starting", resume_requested: "starting", delete_requested: "deleting" },
  failed: { bootstrap_token_issued: "bootstrapping", enrolled: "starting", delete_requested: "deleting" },
  deleting: {},
};

/** @returns the status that follows, or null where the event changes nothing in this status. */
export function nextNodeStatus(status: NodeStatus, event: NodeStatusEvent): NodeStatus | null {
  return TRANSITIONS[status][event] ?? null;
}
