import { NODE_STATUSES, type NodeStatus } from "@fairlead/protocol/resources";
import { NODE_STATUS_EVENTS, nextNodeStatus } from "./node-status.ts";

const MEANINGS: Readonly<Record<NodeStatus, string>> = {
  provisioning: "Created. No bootstrap token has been issued yet, or its machine is being created.",
  bootstrapping: "A bootstrap token was issued; the daemon has not enrolled yet.",
  starting: "The daemon has enrolled; its engine is not ready yet, or an agent has failed.",
  active: "Its engine is ready in the current generation, and no agent has failed.",
  degraded: "Its engine is not ready, or an agent has failed. The status message names it.",
  unreachable:
    "The daemon was stopped, or missed three heartbeats. Its workloads may still be running. The status message says which, and what to do.",
  draining: "Takes no new calls. Its agents stop, and running calls finish.",
  drained: "All calls have ended; its engine stops.",
  failed: "Its machine could not be created. The status message says why.",
  deleting: "Its identity is revoked. This status is final.",
};

/** The text of `docs/node-status.md`; a test compares the two. */
export function nodeStatusReference(): string {
  return [
    "# Node status",
    "",
    "Generated from `packages/control-plane/src/fleet/nodes/observed/node-status.ts`. Each change is an event with its reason, listed by `/events`.",
    "An event without an arrow from a status does not change that status.",
    "",
    "```mermaid",
    "stateDiagram-v2",
    "  [*] --> provisioning",
    ...NODE_STATUSES.flatMap(arrowsFrom),
    "```",
    "",
    "| status | meaning |",
    "| --- | --- |",
    ...NODE_STATUSES.map((status) => `| \`${status}\` | ${MEANINGS[status]} |`),
    "",
  ].join("\n");
}

/** One arrow for each next status, with every event that leads there. */
function arrowsFrom(status: NodeStatus): string[] {
  const events = Map.groupBy(NODE_STATUS_EVENTS, (event) => nextNodeStatus(status, event));
  return Array.from(events)
    .filter(([next]) => next !== null)
    .map(([next, names]) => `  ${status} --> ${next}: ${names.join(", ")}`);
}
