import { join } from "node:path";
import { BUILD } from "@fairlead/protocol/values/build-info";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { Kysely } from "kysely";
import type { PlatformApp } from "../http/platform-host.ts";
import type { Database } from "../installation/db/tables/schema.ts";
import { outgoingFetch } from "../installation/outgoing/outgoing-fetch.ts";
import { keptFor } from "../installation/process/retention.ts";
import type { BillingService } from "../money/billing/billing-service.ts";
import { asRoom, type Ground } from "../room.ts";
import { addFleet } from "../telemetry/metrics/fleet-metrics.ts";
import { registerAgentLimitsRoutes } from "./agents/access/agent-limits-routes.ts";
import { AgentLimitsService } from "./agents/access/agent-limits-service.ts";
import { AgentLogService } from "./agents/access/agent-log-service.ts";
import { registerAgentSecretRoutes } from "./agents/access/agent-secret-routes.ts";
import { createAgentServices } from "./agents/agent-room.ts";
import { registerAgentRoutes } from "./agents/agent-routes.ts";
import { registerConnectorRoutes } from "./agents/definition/connector-routes.ts";
import { ConnectorCatalogue } from "./agents/definition/connectors.ts";
import { AgentAccessLookup } from "./agents/life/agent-access.ts";
import { registerAgentActionRoutes, registerAgentLogRoutes } from "./agents/life/agent-action-routes.ts";
import { AgentPlanner } from "./agents/life/agent-planner.ts";
import { startAgentWatch } from "./agents/life/agent-watch.ts";
import { AgentChangeFeed } from "./agents/records/agent-change-feed.ts";
import { AgentHistory } from "./agents/records/agent-history.ts";
import { agentStores } from "./agents/records/agent-stores.ts";
import { registerDaemonBuildRoutes } from "./builds/daemon-build-routes.ts";
import { DaemonBuildService } from "./builds/daemon-build-service.ts";
import { DownloadSlots } from "./builds/download-slots.ts";
import { registerInstallRoutes } from "./builds/install-routes.ts";
import { programFolder } from "./builds/program-folder.ts";
import { openLinks } from "./link/link-room.ts";
import { startDailySweep } from "./machines/daily-sweep.ts";
import { createMachineOrders, createMachineServices } from "./machines/machine-room.ts";
import { registerMachineRoutes } from "./machines/machine-routes.ts";
import { startMachineRunner } from "./machines/machine-runner.ts";
import { registerPlanRoutes } from "./machines/plans/plan-routes.ts";
import { machineProviders } from "./machines/provisioning/offered-machines.ts";
import { provisioningOptions } from "./machines/provisioning/provisioning-settings.ts";
import { registerNodeActionRoutes, registerNodeLogRoutes } from "./nodes/actions/node-action-routes.ts";
import { registerNodeDaemonRoutes } from "./nodes/actions/node-daemon-routes.ts";
import { NodeLogService } from "./nodes/actions/node-log-service.ts";
import { WorkloadLogs } from "./nodes/actions/workload-logs.ts";
import { registerDaemonVersionRoutes } from "./nodes/desired/daemon-version-routes.ts";
import { createNodeServices } from "./nodes/node-room.ts";
import { registerNodeRoutes } from "./nodes/node-routes.ts";
import type { TakenNames } from "./nodes/node-service.ts";
import { livenessOptions } from "./nodes/observed/fleet-settings.ts";
import { registerNodeObservedRoutes } from "./nodes/observed/node-observed-routes.ts";
import { startNodeSweeper } from "./nodes/observed/node-sweeper.ts";
import { EventRooms } from "./nodes/records/event-rooms.ts";
import { nodeStores } from "./nodes/records/node-stores.ts";
import { registerNodeSecretRoutes } from "./nodes/secrets/node-secret-routes.ts";
import { SecretService } from "./secrets/secret-service.ts";
import { TunnelHub } from "./tunnel/tunnel-hub.ts";

interface FleetOptions extends Ground {
  readonly names: TakenNames;
  readonly billing: BillingService;
}

export type Fleet = ReturnType<typeof openFleet>;

/** Nodes, their machines and agents, and their connections to this server. */
export function openFleet(options: FleetOptions) {
  const { config, log, clock, bounds, installation, billing } = options;
  const { access } = options.projects;
  const { db, longReads, audit, users } = installation;
  const tunnels = new TunnelHub({ log, clock, bounds });
  const agentChanges = new AgentChangeFeed();
  const agentAccess = new AgentAccessLookup(agentStores(db).agents);
  const residents = openResidents(options, tunnels, agentChanges);
  const { nodes, agents, machines } = residents;
  const { changes } = nodes;
  const link = openLinks({ ...options, nodes, agents, agentAccess, tunnels });
  const { hub, links, admissions, upgrades } = link;
  const workloadLogs = new WorkloadLogs({ sessions: users, daemons: tunnels });
  const parts = { db, access, audit };
  const nodeLogs = new NodeLogService({ ...parts, workloadLogs, nodes: nodes.nodes });
  const agentLogs = new AgentLogService({ ...parts, workloadLogs, agents: agents.agents });
  const agentLimits = new AgentLimitsService({ ...parts, billing, agents: agents.agents, changes: agentChanges });
  return asRoom({
    nodes: nodes.nodes,
    changes,
    engines: nodes.engines,
    identities: nodes.identities,
    agents: agents.agents,
    agentChanges,
    agentAccess,
    /** For deleted projects. */
    removals: { agents: agents.agentRemoval, nodes: nodes.removal },
    tunnels,
    upgrades,
    /** Ends open log streams, so that the host can stop. */
    stopLogs: () => workloadLogs.close(),
    /** Closes links and tunnels. */
    cut: async () => {
      await links.close();
      tunnels.close();
    },
    routes: (app) => {
      registerFleetRoutes(app, options, residents);
      registerNodeLogRoutes(app, nodeLogs);
      registerAgentLogRoutes(app, agentLogs);
      registerAgentLimitsRoutes(app, agentLimits);
    },
    runners: [
      () => startNodeSweeper({ ...nodes, log }),
      () => startAgentWatch({ stores: agentStores(db), courses: agents.agentTransitions, nodes: changes, log }),
      () => startMachineRunner({ ...machines, changes, clock, log }),
      () => startDailySweep(machines.sweeps, log),
    ],
    retentions: eventRetentions(longReads, config.retention.nodeEventDays, clock),
    metrics: (registry) => {
      const nodesByStatus = () => nodeStores(longReads).nodes.countByStatus();
      const agentsByState = () => agentStores(longReads).agents.countByState();
      const fleet = nodes.liveness;
      addFleet(registry, { links, tunnels, hub, admissions, fleet, nodesByStatus, agentsByState });
    },
  });
}

/** Nodes, machines and agents, which depend on each other. */
function openResidents(options: FleetOptions, tunnels: TunnelHub, changes: AgentChangeFeed) {
  const { config, log, clock, ids, bounds, installation, publicUrl, modelsUrl, projects, names } = options;
  const { access } = projects;
  const { db, audit, tokens, users, record, sealer, writeTogether } = installation;
  const folders = [config.builds.dir, join(programFolder(), "daemon-builds")];
  const daemonBuilds = new DaemonBuildService({ folders, serverVersion: BUILD.version, log });
  const parts = { db, access, audit, clock, ids, log, bounds, people: users };
  const { events } = agentStores(db);
  const rooms = new EventRooms({
    count: (nodeId, limit) => events.countOn(nodeId, limit),
    maxRows: config.retention.nodeEventRows,
    clock,
    onDropped: (_nodeId, rows) => bounds.reached("agent_event_rows", rows),
  });
  const { provisioning, proxy } = config;
  const outside = { installationId: record.id, clock, fetch: outgoingFetch(proxy.rules) };
  const renting = { options: provisioningOptions(provisioning), providers: machineProviders(provisioning, outside) };
  const orders = createMachineOrders({ db, sealer, clock, publicUrl, ...renting });
  const connectors = new ConnectorCatalogue(config.connectors);
  const secrets = new SecretService({ kind: "agent", db, sealer, clock });
  const nodes = createNodeServices({
    ...parts,
    machines: orders.orders,
    writeTogether,
    names,
    issuer: tokens,
    maxEventRows: config.retention.nodeEventRows,
    histories: new AgentHistory({ clock, ids, stores: agentStores(db), rooms }),
    agents: new AgentPlanner({ connectors, secrets, modelsUrl }),
    secrets: new SecretService({ kind: "node", db, sealer, clock }),
    calls: tunnels,
    installation: record,
    publicUrl,
    builds: daemonBuilds,
    liveness: livenessOptions(config.fleet),
  });
  const machines = createMachineServices(orders, { nodes: nodes.nodeMachines, access, audit, log });
  const agents = createAgentServices({ ...parts, rooms, hosts: nodes.agentHosts, connectors, secrets, changes });
  return { nodes, agents, daemonBuilds, machines: { ...orders, ...machines } };
}

function registerFleetRoutes(
  app: PlatformApp,
  { publicUrl, bounds, limits, idempotency }: FleetOptions,
  { nodes, machines, agents, daemonBuilds }: ReturnType<typeof openResidents>,
): void {
  registerNodeRoutes(app, { ...nodes, idempotency });
  registerNodeObservedRoutes(app, nodes);
  registerNodeActionRoutes(app, { ...nodes, idempotency });
  registerMachineRoutes(app, machines.sweeps);
  registerPlanRoutes(app, machines.plans);
  registerDaemonVersionRoutes(app, nodes.daemonVersions);
  registerNodeSecretRoutes(app, nodes.nodeSecrets);
  registerAgentRoutes(app, { ...agents, idempotency });
  registerAgentActionRoutes(app, agents);
  registerAgentSecretRoutes(app, agents.agentSecrets);
  registerConnectorRoutes(app, agents.connectors);
  registerDaemonBuildRoutes(app, { daemonBuilds, slots: new DownloadSlots(bounds) });
  registerInstallRoutes(app, {
    daemonBuilds,
    publicUrl,
    installScript: join(programFolder(), "scripts/install/install.sh"),
  });
  registerNodeDaemonRoutes(app, { ...nodes, limits });
}

/** @param longReads so that deletions block no other statement. */
export function eventRetentions(longReads: Kysely<Database>, days: number, clock: Clock) {
  const nodes = nodeStores(longReads).events;
  const agents = agentStores(longReads).events;
  return [
    keptFor({ what: "node events", days, clock, remove: (before, limit) => nodes.deleteBefore(before, limit) }),
    keptFor({ what: "agent events", days, clock, remove: (before, limit) => agents.deleteBefore(before, limit) }),
  ] as const;
}
