import type { AgentLifecycleState } from "@fairlead/protocol/agents";
import type { NodeStatus } from "@fairlead/protocol/resources";
import type { Registry } from "prom-client";
import type { FleetFigures } from "../../fleet/nodes/observed/node-liveness.ts";
import { counter, distribution, gauge, type Sample } from "./metric-kinds.ts";

export interface FleetMetricSources {
  readonly links: { readonly open: number };
  readonly tunnels: { readonly open: number };
  readonly hub: { readonly heartbeats: number; readonly opened: number };
  readonly fleet: { readonly figures: FleetFigures };
  /** For links and tunnels. */
  readonly admissions: Readonly<Record<"links" | "tunnels", { readonly refused: number }>>;
  /** All statuses, including empty ones. */
  readonly nodesByStatus: () => Promise<Readonly<Record<NodeStatus, number>>>;
  /** All states, including empty ones. */
  readonly agentsByState: () => Promise<Readonly<Record<AgentLifecycleState, number>>>;
}

/** Metrics of nodes, daemons and agents. */
export function addFleet(registry: Registry, sources: FleetMetricSources): void {
  const { fleet, nodesByStatus, agentsByState } = sources;
  addConnections(registry, sources);
  gauge(registry, "fairlead_fleet_brake", {
    help: "1 while no node is marked `unreachable` because a large part of the fleet went silent at the same time.",
    read: () => [[{}, fleet.figures.braked ? 1 : 0]],
  });
  gauge(registry, "fairlead_fleet_nodes_overdue", {
    help: "Nodes that missed a heartbeat, but are not yet `unreachable`.",
    read: () => [[{}, fleet.figures.overdue]],
  });
  gauge(registry, "fairlead_fleet_heartbeat_interval_seconds", {
    help: "Seconds between the heartbeats of a daemon.",
    read: () => [[{}, fleet.figures.heartbeatSeconds]],
  });
  distribution(registry, "fairlead_fleet_heartbeat_batch_nodes", {
    help: "Number of nodes per write of heartbeats.",
    read: () => [{ labels: {}, values: fleet.figures.batches }],
  });
  gauge(registry, "fairlead_nodes", {
    help: "Nodes by status.",
    labelNames: ["status"],
    read: async () => Object.entries(await nodesByStatus()).map(([status, count]): Sample => [{ status }, count]),
  });
  gauge(registry, "fairlead_agents", {
    help: "Agents by lifecycle state.",
    labelNames: ["state"],
    read: async () => Object.entries(await agentsByState()).map(([state, count]): Sample => [{ state }, count]),
  });
}

function addConnections(registry: Registry, { links, tunnels, hub, admissions }: FleetMetricSources): void {
  gauge(registry, "fairlead_daemon_links_open", { help: "Connected daemons.", read: () => [[{}, links.open]] });
  counter(registry, "fairlead_daemon_links_opened_total", {
    help: "Links opened by daemons. After a restart of the server, the whole fleet reconnects.",
    read: () => [[{}, hub.opened]],
  });
  gauge(registry, "fairlead_tunnels_open", { help: "Reachable nodes.", read: () => [[{}, tunnels.open]] });
  counter(registry, "fairlead_daemon_upgrades_put_off_total", {
    help: "Links and tunnels that were deferred because too many were opened at the same time.",
    labelNames: ["of"],
    read: () => Object.entries(admissions).map(([of, { refused }]): Sample => [{ of }, refused]),
  });
  counter(registry, "fairlead_heartbeats_total", {
    help: "Heartbeats of daemons.",
    read: () => [[{}, hub.heartbeats]],
  });
}
