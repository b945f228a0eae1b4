import type { BoundRows } from "./bound-row.ts";

/** Bounds before authentication: connections, upgrades, handshakes. */
export const ENTRANCE_BOUNDS = {
  connections: {
    party: "anyone",
    entry: "connections of both hosts",
    limit: "20,000 (`server.maxConnections`)",
    effect: "the oldest connection that has not sent a request is closed, otherwise the new one",
    test: "packages/control-plane/src/http/limits/open-connections.test.ts: holds no more connections than the total limit",
  },
  connections_per_address: {
    party: "anyone",
    entry: "connections of both hosts from one address",
    limit:
      "2,000 (`server.maxConnectionsPerAddress`), IPv6 by /64; trusted proxies and nodes with a link or a tunnel are not counted",
    effect: "the address's oldest connection that has not sent a request is closed, otherwise the new one",
    test: "packages/control-plane/src/http/limits/open-connections.test.ts: silent connections of an address make room",
  },
  waiting_connections: {
    party: "anyone",
    entry: "connections that the kernel queues until they are accepted, per host",
    limit: "4,096, or `net.core.somaxconn` if that is lower",
    effect: "the kernel drops the attempt, and the client retries after 1, 3 and 7 s",
    counted: "`nstat -az TcpExtListenOverflows` on the machine",
    test: "packages/control-plane/src/http/listening/listen.test.ts: a burst of connections waits for a busy event loop",
  },
  silent_connections: {
    party: "anyone",
    entry: "connections of the platform host",
    limit:
      "30 s from opening the connection, or from the last response, to the end of the next request head; 30 s for a body",
    effect: "408 `request_timeout`, and the connection is closed",
    counted: "none",
    test: "packages/control-plane/src/http/upgrades/divert-requests.test.ts: closes a connection that sends nothing",
  },
  waiting_queries: {
    party: "anyone",
    entry: "queries to a PostgreSQL store that hangs",
    limit: "10 connections; 1,000 waiting queries, each for up to 5 s; one `/readyz` query at a time, for up to 5 s",
    effect: "503 `unavailable`",
    counted: "`fairlead_http_requests_total` with status 503",
    test: "packages/control-plane/src/installation/db/postgres/open-postgres.test.ts: queries beyond the waiting limit fail immediately",
  },
  tls_handshakes: {
    party: "anyone",
    entry: "TLS of both hosts",
    limit: "5 s per handshake, counted as a connection during that time; no renegotiation",
    effect: "closed",
    counted: "none",
    test: "packages/control-plane/src/http/listening/tls-front.test.ts: unfinished handshakes and garbage",
  },
  upgrade_authentications: {
    party: "anyone",
    entry: "upgrades: daemon links, tunnels, WebSockets to workloads",
    limit: "1,000 concurrent authentications per address, 4,000 in total",
    effect: "503 `overloaded`, retry after 1 s",
    test: "packages/control-plane/src/http/upgrades/upgrade-guard.test.ts: limits concurrent authentications",
  },
  failed_upgrades: {
    party: "anyone",
    entry: "upgrades: daemon links, tunnels, WebSockets to workloads",
    limit:
      "120 failed authentications per minute and address (`rateLimits.upgradesPerAddress`); the 50,000 most recent addresses are tracked, IPv6 by /64",
    effect: "429 `rate_limit_exceeded` instead of 401; valid credentials are accepted",
    test: "packages/control-plane/src/http/upgrades/upgrade-guard.test.ts: a failure is charged to its address",
  },
  daemon_upgrades: {
    party: "node",
    entry: "daemon links and tunnels of all nodes, with a verified token",
    limit:
      "200 links and 200 tunnels per second (`fleet.connectsPerSecond`); no new links while 200 nodes wait for the response to their hello",
    effect: "503 `overloaded` with the time to reconnect",
    counted: "`fairlead_daemon_upgrades_put_off_total`",
    test: "packages/control-plane/src/http/upgrades/upgrade-dispatcher.test.ts: charges the shared limit only for verified callers",
  },
  links_of_node: {
    party: "node",
    entry: "daemon links of one node",
    limit: "a burst of 10, then one every 2 s",
    effect: "429 `rate_limit_exceeded` with the time to reconnect",
    test: "packages/control-plane/src/fleet/link/daemon-upgrades.test.ts: a node that reconnects in a tight loop",
  },
  tunnels_of_node: {
    party: "node",
    entry: "tunnels of one node",
    limit: "a burst of 10, then one every 2 s",
    effect: "429 `rate_limit_exceeded` with the time to reconnect",
    test: "packages/control-plane/src/fleet/link/daemon-upgrades.test.ts: a node that reconnects in a tight loop",
  },
  link_hello: {
    party: "node",
    entry: "daemon link",
    limit: "10 s until hello is sent",
    effect: "closed with code 1008 and a reason",
    event: "log: `daemon link closed: no hello received`",
    test: "packages/control-plane/src/fleet/link/link-greetings.test.ts: ends a link that does not say hello in time",
  },
  links_without_hello: {
    party: "node",
    entry: "daemon links of one node",
    limit: "2 that have not said hello",
    effect: "the oldest is closed with code 1008 and a reason",
    event: "log: `daemon link closed: no hello received`",
    test: "packages/control-plane/src/fleet/link/link-greetings.test.ts: a third link of a node ends its oldest",
  },
  ambiguous_head: {
    party: "anyone",
    entry: "both hosts, upgrades, the relay",
    limit:
      "one line each of `host`, `authorization`, `x-api-key`, `idempotency-key`, `service-project-id` and other single-value fields; " +
      "`host` is a name or an address; the target is a path",
    effect: "400 `invalid_request`",
    counted: '`fairlead_http_requests_total{status="400"}`',
    test: "packages/control-plane/src/http/requests/request-head.test.ts: is refused: %s",
  },
  daemon_downloads: {
    party: "anyone",
    entry: "`GET /v1/daemon-builds/{file}`",
    limit: "64 at a time per address, 256 in total; a download that makes no progress for 60 s is cut off",
    effect: "503 `overloaded`, retry after 10 s",
    test: "packages/control-plane/src/fleet/builds/daemon-build-routes.test.ts: downloads that are not read keep their slots, and further ones are rejected",
  },
} as const satisfies BoundRows;
