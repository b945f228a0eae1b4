import type { AgentLifecycleState } from "@fairlead/protocol/agents";

/** The agent lifecycle as a pure state machine. `docs/agent-status.md` is generated from this table. */

export const AGENT_LIFECYCLE_EVENTS = [
  "start_requested",
  "stop_requested",
  "move_requested",
  "reported_not_ready",
  "reported_ready",
  "reported_failed",
  "reported_gone",
  "node_went_quiet",
  "node_drained",
  "node_deleted",
  "delete_requested",
] as const;
export type AgentLifecycleEvent = (typeof AGENT_LIFECYCLE_EVENTS)[number];

type Row = Readonly<Partial<Record<AgentLifecycleEvent, AgentLifecycleState>>>;

/** Reports about a run apply only to wanted agents; from `stopped`, that is one whose node was resumed. */
const TRANSITIONS: Readonly<Record<AgentLifecycleState, Row>> = {
  created: { start_requested: "starting", delete_requested: "deleting" },
  starting: {
    stop_requested: "stopping",
    reported_ready: "running",
    reported_failed: "failed",
    node_drained: "stopping",
    node_deleted: "failed",
    delete_requested: "deleting",
  },
  running: {
    stop_requested: "stopping",
    move_requested: "starting",
    reported_not_ready: "starting",
    reported_failed: "failed",
    node_went_quiet: "starting",
    node_drained: "stopping",
    node_deleted: "failed",
    delete_requested: "deleting",
  },
  stopping: {
    start_requested: "starting",
    move_requested: "starting",
    reported_not_ready: "starting",
    reported_ready: "running",
    reported_failed: "failed",
    reported_gone: "stopped",
    node_deleted: "failed",
    delete_requested: "deleting",
  },
  stopped: {
    start_requested: "starting",
    move_requested: "starting",
    reported_not_ready: "starting",
    reported_ready: "running",
    reported_failed: "failed",
    node_deleted: "failed",
    delete_requested: "deleting",
  },
  failed: {
    start_requested: "starting",
    stop_requested: "stopping",
    move_requested: "starting",
    reported_not_ready: "starting",
    reported_ready: "running",
    node_drained: "stopping",
    delete_requested: "deleting",
  },
  deleting: {},
};

/** @returns the next state, or null if the event has no effect in this one. */
export function nextAgentState(state: AgentLifecycleState, event: AgentLifecycleEvent): AgentLifecycleState | null {
  return TRANSITIONS[state][event] ?? null;
}
