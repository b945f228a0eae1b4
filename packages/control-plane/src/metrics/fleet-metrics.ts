import type { AgentLifecycleState } from "@fairlead/protocol/agents";
import type { NodeStatus } from "@fairlead/protocol/resources";
import type { Registry } from "prom-client";
import type { FleetFigures } from "../nodes/node-liveness.ts";
import { counter, distribution, gauge, type Sample } from "./metric-kinds.ts";

export interface FleetMetricSources {
  readonly links: { readonly open: number };
  readonly tunnels: { readonly open: number };
  readonly hub: { readonly heartbeats: number; readonly opened: number };
  readonly fleet: { readonly figures: FleetFigures };
  /** Of links and of tunnels. */
  readonly admissions: Readonly<Record<"links" | "tunnels", { readonly refused: number }>>;
  /** Every status, those of no node too. */
  readonly nodesByStatus: () => Promise<Readonly<Record<NodeStatus, number>>>;
  /** Every state, those of no agent too. */
  readonly agentsByState: () => Promise<Readonly<Record<AgentLifecycleState, number>>>;
}

/** The figures of nodes, their daemons and their agents. */
export function addFleet(registry: Registry, sources: FleetMetricSources): void {
  const { fleet, nodesByStatus, agentsByState } = sources;
  addConnections(registry, sources);
  gauge(registry, "fairlead_fleet_brake", {
    help: "1 while no node is made `unreachable`, since a large part of the fleet went quiet at once.",
    read: () => [[{}, fleet.figures.braked ? 1 : 0]],
  });
  gauge(registry, "fairlead_fleet_nodes_overdue", {
    help: "Nodes that missed a heartbeat, before they are `unreachable`.",
    read: () => [[{}, fleet.figures.overdue]],
  });
  gauge(registry, "fairlead_fleet_heartbeat_interval_seconds", {
    help: "How often each daemon is told to send a heartbeat.",
    read: () => [[{}, fleet.figures.heartbeatSeconds]],
  });
  distribution(registry, "fairlead_fleet_heartbeat_batch_nodes", {
    help: "How many nodes each write of heartbeats was for.",
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
  gauge(registry, "fairlead_daemon_links_open", { help: "Daemons connected.", read: () => [[{}, links.open]] });
  counter(registry, "fairlead_daemon_links_opened_total", {
    help: "Links that daemons opened: after a restart of the server, the fleet.",
    read: () => [[{}, hub.opened]],
  });
  gauge(registry, "fairlead_tunnels_open", { help: "Nodes that can be reached.", read: () => [[{}, tunnels.open]] });
  counter(registry, "fairlead_daemon_upgrades_put_off_total", {
    help: "Links and tunnels that were put off for a while, since too many came at once.",
    labelNames: ["of"],
    read: () => Object.entries(admissions).map(([of, { refused }]): Sample => [{ of }, refused]),
  });
  counter(registry, "fairlead_heartbeats_total", {
    help: "Heartbeats of daemons.",
    read: () => [[{}, hub.heartbeats]],
  });
}
