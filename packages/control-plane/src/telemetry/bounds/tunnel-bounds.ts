import type { BoundRows } from "./bound-row.ts";

const ATTACKS = "packages/control-plane/src/fleet/tunnel/hostile-node.test.ts";

/** What a node may send through its tunnel. */
export const TUNNEL_BOUNDS = {
  tunnel_frames: {
    party: "node",
    entry: "tunnel",
    limit:
      "frames that serve no call (pings, empty frames, unneeded window updates, frames for closed streams): a burst of 10,000, then 1,000 per second",
    effect: "the tunnel closes; the node's calls fail with `upstream_failed`",
    event: "log `tunnel closed: protocol violation`",
    test: `${ATTACKS}: is cut off when it floods its tunnel with`,
  },
  tunnel_window: {
    party: "node",
    entry: "tunnel",
    limit: "256 KiB unread per call; no streams opened by the node; window credit below 4 GiB; only known frames",
    effect: "the tunnel closes; the node's calls fail with `upstream_failed`",
    event: "log `tunnel closed: protocol violation`",
    test: `${ATTACKS}: is cut off when it breaks the protocol with`,
  },
  tunnel_held_bytes: {
    party: "node",
    entry: "tunnel",
    limit: "128 MiB unread over all calls of a tunnel",
    effect: "the call whose bytes exceed it is cut off; the others continue",
    test: `${ATTACKS}: fills no more memory than its share when callers do not read`,
  },
  tunnel_head_bytes: {
    party: "node",
    entry: "tunnel, head of a response",
    limit: "144 KiB, 300 headers, 3 levels of nesting",
    effect: "the call fails with `upstream_failed`",
    test: `${ATTACKS}: fails one call with a response head that is`,
  },
  tunnel_stalled: {
    party: "node",
    entry: "tunnel",
    limit:
      "60 s without reading while bytes are waiting; at most 192 KiB wait in the connection, plus one piece of 64 KiB",
    effect: "the tunnel closes; the node's calls fail with `upstream_failed`",
    test: "packages/wire/src/liveness.test.ts: disconnects a peer that reads nothing, even if it answers pings",
  },
  tunnels_per_node: {
    party: "node",
    entry: "tunnel upgrade",
    limit: "4 tunnels at a time: the current one, and older ones with running calls",
    effect: "the oldest tunnel closes along with its calls",
    test: `${ATTACKS}: has no more than four tunnels at a time`,
  },
  node_logs: {
    party: "node",
    entry: "logs sent by a node's daemon",
    limit: "512 KiB per line, no nesting; 30 s until the first byte; 32 concurrent reads per node, 500 in total",
    effect: "the read ends with an error; further reads get 503 with `Retry-After`",
    counted: "status codes of the route",
    test: "packages/control-plane/src/fleet/nodes/actions/workload-logs.test.ts: one node's logs that do not begin leave room for the logs of others",
  },
} as const satisfies BoundRows;
