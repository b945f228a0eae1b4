import { MAX_LINK_CALLS, MAX_LINK_MESSAGE_BYTES } from "@fairlead/protocol/daemon-link";
import type { BoundRows } from "./bound-row.ts";
import { MAX_AGENTS_PER_NODE, MAX_UNREAD_BYTES, NODE_RATES, type NodeRateKind } from "./node-rate-bounds.ts";

const FLOODS = "packages/control-plane/src/fleet/link/link-flood.test.ts";
const HISTORY = "packages/control-plane/src/fleet/nodes/records/node-history.test.ts";
const CLOSED = "the link is closed with code 4029 and a reason";
const FLOODED = "event `link_flooded` of the node, at most one an hour";

const rate = (kind: NodeRateKind, unit: string = kind): string =>
  `${NODE_RATES[kind].capacity} ${unit}, then ${NODE_RATES[kind].perSecond}/s`;
const CALLS = (["hello", "heartbeat", "observe", "events", "secret", "workerToken", "desiredState"] as const).map(
  (kind) => rate(kind),
);

/** What a node may send over its daemon link, and over HTTP in its own name. */
export const LINK_BOUNDS = {
  link_message_bytes: {
    party: "node",
    entry: "daemon link, a single message",
    limit: `${MAX_LINK_MESSAGE_BYTES} bytes`,
    effect: "the link is closed with code 1009",
    event: FLOODED,
    test: `${FLOODS}: cuts a link with an oversized message`,
  },
  link_messages: {
    party: "node",
    entry: "daemon link, messages, pings and pongs of one node",
    limit: `${rate("frames", "messages")}; ${rate("bytes")}`,
    effect: CLOSED,
    event: FLOODED,
    test: `${FLOODS}: closes the link of a node that sends too many messages`,
  },
  link_depth: {
    party: "node",
    entry: "daemon link, nesting of a message",
    limit: "64 levels, checked before it is parsed",
    effect: CLOSED,
    event: FLOODED,
    test: `${FLOODS}: closes a link whose message is nested too deeply, before it is parsed`,
  },
  link_calls: {
    party: "node",
    entry: "daemon link, concurrent calls of a link",
    limit: `${MAX_LINK_CALLS}`,
    effect: CLOSED,
    event: FLOODED,
    test: `${FLOODS}: closes a link with too many calls at the same time`,
  },
  link_subscriptions: {
    party: "node",
    entry: "daemon link, subscriptions of one link",
    limit: "1",
    effect: "a second one ends the first",
    counted: "not counted: daemons renew their subscriptions",
    test: `${FLOODS}: a second subscription ends the first, and a change is computed once for a link`,
  },
  link_call_rate: {
    party: "node",
    entry: "daemon link, calls of one node by kind",
    limit: CALLS.join("; "),
    effect: "`TOO_MANY_REQUESTS` with the time to wait",
    test: `${FLOODS}: rejects calls beyond a node's rate with the time to wait`,
  },
  link_rejections: {
    party: "node",
    entry: "daemon link, rejected calls of one node",
    limit: rate("rejected"),
    effect: CLOSED,
    event: FLOODED,
    test: `${FLOODS}: closes the link of a node that does not stop after rejections`,
  },
  link_fields: {
    party: "node",
    entry: "daemon link, fields of a message",
    limit: "each text, list and number has its own limit in `packages/protocol/src`",
    effect: "`BAD_REQUEST`",
    test: `${FLOODS}: rejects an event with an overlong ID`,
  },
  link_unread_bytes: {
    party: "node",
    entry: "daemon link, bytes not read by the daemon",
    limit: `${MAX_UNREAD_BYTES} bytes`,
    effect: "the link is cut",
    event: "a log line",
    test: `${FLOODS}: cuts off a daemon that does not read its responses`,
  },
  node_call_rate: {
    party: "node",
    entry: "`POST /v1/nodes/{id}/ready`, `enroll` and `identity-tokens`, once the node is authenticated",
    limit: [rate("ready"), rate("enroll"), rate("identityToken")].join("; "),
    effect: "429 with `Retry-After`",
    test: "packages/control-plane/src/fleet/nodes/node-call-rates.test.ts: rejects calls of one node beyond its rate",
  },
  node_event_rows: {
    party: "node",
    entry: "history of one node",
    limit: "10,000 rows from the node's reports (`retention.nodeEventRows`)",
    effect: "the newest are dropped",
    event: "event `events_dropped` of the node, with their number",
    test: `${HISTORY}: keeps what was there and drops the newest beyond the limit`,
  },
  agents_per_node: {
    party: "member",
    entry: "`POST /v1/agents`, `PATCH /v1/agents/{id}`",
    limit: `${MAX_AGENTS_PER_NODE} agents of one node`,
    effect: "400, naming `runtimeProvider`",
    test: "packages/control-plane/src/fleet/agents/definition/agent-inputs.test.ts: a node takes a limited number of agents",
  },
  agent_event_rows: {
    party: "node",
    entry: "histories of the agents on one node",
    limit: "10,000 rows from the node's reports (`retention.nodeEventRows`)",
    effect: "the newest are dropped",
    test: "packages/control-plane/src/fleet/agents/records/agent-event-rows.test.ts: a node fills the histories of its agents up to the limit",
  },
} as const satisfies BoundRows;
