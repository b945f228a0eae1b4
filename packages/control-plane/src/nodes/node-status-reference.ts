import { NODE_STATUSES, type NodeStatus } from "@fairlead/protocol/resources";
import { NODE_STATUS_EVENTS, nextNodeStatus } from "./node-status.ts";

const MEANINGS: Readonly<Record<NodeStatus, string>> = {
  provisioning: "Created; no bootstrap token was issued yet, or its machine is being made.",
  bootstrapping: "A bootstrap token is out; the daemon has not enrolled.",
  starting: "The daemon has enrolled; its engine is not ready yet, or an agent is in trouble.",
  active: "Its engine is ready as the present generation asks for it, and no agent is in trouble.",
  degraded: "Its engine is not ready, or an agent is in trouble; the status message names it.",
  unreachable: "The daemon was not heard for three heartbeats; its workloads may still run.",
  draining: "Takes no new calls; its agents stop, and running calls end.",
  drained: "Nothing runs for callers any more.",
  failed: "Its machine could not be made; the status message says why.",
  deleting: "Its identity is revoked. Nothing leads on from here.",
};

/** The text of `docs/node-status.md`; a test compares the two. */
export function nodeStatusReference(): string {
  return [
    "# Node status",
    "",
    "Generated from `packages/control-plane/src/nodes/node-status.ts`. Entering a status is an event with its reason; `/events` lists them.",
    "An event that has no arrow from a status changes nothing there.",
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
