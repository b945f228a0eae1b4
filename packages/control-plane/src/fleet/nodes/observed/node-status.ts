import type { NodeStatus } from "@fairlead/protocol/resources";

/** The node status as a pure state machine. `docs/node-status.md` is generated from this table. */

export const NODE_STATUS_EVENTS = [
  "bootstrap_token_issued",
  "enrolled",
  "reported_ready",
  "reported_not_ready",
  "went_quiet",
  "daemon_stopped",
  "drain_requested",
  "drained",
  "resume_requested",
  "provisioning_failed",
  "delete_requested",
] as const;
export type NodeStatusEvent = (typeof NODE_STATUS_EVENTS)[number];

type Row = Readonly<Partial<Record<NodeStatusEvent, NodeStatus>>>;

/** A reinstalled machine enrolls again from any status, so every status of an existing node accepts `enrolled`. */
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
    daemon_stopped: "unreachable",
    drain_requested: "draining",
    delete_requested: "deleting",
  },
  active: {
    enrolled: "starting",
    reported_not_ready: "degraded",
    went_quiet: "unreachable",
    daemon_stopped: "unreachable",
    drain_requested: "draining",
    delete_requested: "deleting",
  },
  degraded: {
    enrolled: "starting",
    reported_ready: "active",
    went_quiet: "unreachable",
    daemon_stopped: "unreachable",
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

/** @returns the next status, or null if the event has no effect in this one. */
export function nextNodeStatus(status: NodeStatus, event: NodeStatusEvent): NodeStatus | null {
  return TRANSITIONS[status][event] ?? null;
}
