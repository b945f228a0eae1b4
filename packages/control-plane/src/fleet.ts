import { join } from "node:path";
import { BUILD } from "@fairlead/protocol/build-info";
import type { AgentChanges } from "./agents/agent-changes.ts";
import { AgentHistory } from "./agents/agent-history.ts";
import { AgentLogService } from "./agents/agent-log-service.ts";
import { AgentPlanner } from "./agents/agent-planner.ts";
import { type AgentServices, createAgentServices } from "./agents/agent-services.ts";
import type { AgentStandings } from "./agents/agent-standing.ts";
import { agentStores } from "./agents/agent-stores.ts";
import { AgentTokenService } from "./agents/agent-token-service.ts";
import { ConnectorCatalogue } from "./agents/connectors.ts";
import type { ProjectAccess } from "./auth/access.ts";
import { DaemonBuildService } from "./builds/daemon-build-service.ts";
import { programFolder } from "./builds/program-folder.ts";
import type { Context } from "./context.ts";
import { LinkHub, type LinkHubDeps } from "./link/link-hub.ts";
import { LinkServer } from "./link/link-server.ts";
import {
  createMachineOrders,
  createMachineServices,
  type MachineOrders,
  type MachineOrdersDeps,
  type MachineServices,
  machineProviders,
} from "./machines/machine-services.ts";
import { provisioningOptions } from "./machines/provisioning-settings.ts";
import { livenessOptions } from "./nodes/fleet-settings.ts";
import { NodeLogService } from "./nodes/node-log-service.ts";
import type { TakenNames } from "./nodes/node-service.ts";
import { createNodeIdentities, createNodeServices, type NodeServices } from "./nodes/node-services.ts";
import { WorkloadLogs } from "./nodes/workload-logs.ts";
import { readAgentSecretKey } from "./secrets/secret-key.ts";
import { SecretService } from "./secrets/secret-service.ts";
import { TunnelHub } from "./tunnel/tunnel-hub.ts";

/** Composition: nodes, the agents on them, and what connects them to here. */

const LINK_RESYNC_MS = 10 * 60_000;

export interface Fleet extends AgentServices {
  readonly nodes: NodeServices;
  readonly machines: MachineOrders & MachineServices;
  readonly workloadLogs: WorkloadLogs;
  readonly nodeLogs: NodeLogService;
  readonly agentLogs: AgentLogService;
  readonly daemonBuilds: DaemonBuildService;
  readonly hub: LinkHub;
  readonly links: LinkServer;
  readonly tunnels: TunnelHub;
}

interface FleetDeps {
  readonly access: ProjectAccess;
  readonly names: TakenNames;
  readonly agentChanges: AgentChanges;
  readonly agentStandings: AgentStandings;
}

export function createFleet(context: Context, deps: FleetDeps): Fleet {
  const { access, names, agentChanges, agentStandings } = deps;
  const { config, log, ports, installation, addresses } = context;
  const { db, audit, tokens, users, record, sealer, writeTogether } = installation;
  const tunnels = new TunnelHub({ log });
  const daemonBuilds = createDaemonBuilds(context);
  const renting = createRenting(context);
  const connectors = new ConnectorCatalogue(config.connectors);
  const sealing = { db, sealer, clock: ports.clock };
  const agentSecrets = new SecretService({ kind: "agent", ...sealing });
  const nodes = createNodeServices({
    ...ports,
    db,
    machines: renting.orders,
    writeTogether,
    names,
    access,
    audit,
    issuer: tokens,
    histories: new AgentHistory({ ...ports, stores: agentStores(db) }),
    agents: new AgentPlanner({ connectors, secrets: agentSecrets, modelsUrl: addresses.modelsUrl }),
    secrets: new SecretService({ kind: "node", ...sealing }),
    calls: tunnels,
    people: users,
    log,
    installation: record,
    publicUrl: addresses.publicUrl,
    builds: daemonBuilds,
    liveness: livenessOptions(config.fleet),
  });
  const machines = {
    ...renting,
    ...createMachineServices({ ...renting, nodes: nodes.nodeMachines, access, audit, log }),
  };
  const agents = createAgentServices({
    ...ports,
    db,
    hosts: nodes.agentHosts,
    connectors,
    secrets: agentSecrets,
    changes: agentChanges,
    access,
    audit,
    people: users,
    log,
  });
  const { reports, liveness, changes } = nodes;
  const secrets = createDeliveries(nodes, agents);
  const agentTokens = new AgentTokenService({ tokens, nodes: createNodeIdentities(db), agents: agentStandings });
  const parts = { reports, liveness, secrets, agentTokens, changes };
  const hub = new LinkHub({ ...parts, clock: ports.clock, log, resyncMs: LINK_RESYNC_MS });
  const links = new LinkServer({ links: hub, log });
  cutRemovedNodes(nodes, { links, tunnels });
  const workloadLogs = new WorkloadLogs({ sessions: users, daemons: tunnels });
  const logs = { db, access, audit, workloadLogs };
  const nodeLogs = new NodeLogService({ ...nodes, ...logs });
  const agentLogs = new AgentLogService({ ...agents, ...logs });
  return { nodes, ...agents, machines, workloadLogs, nodeLogs, agentLogs, daemonBuilds, hub, links, tunnels };
}

function createRenting({ config, ports, installation, addresses }: Context): MachineOrders & MachineOrdersDeps {
  const { db, sealer, record } = installation;
  const parts = { installationId: record.id, clock: ports.clock };
  const providers = machineProviders(config.provisioning, parts);
  const options = provisioningOptions(config.provisioning);
  const deps = { db, providers, sealer, clock: ports.clock, publicUrl: addresses.publicUrl, options };
  return { ...deps, ...createMachineOrders(deps) };
}

function createDaemonBuilds({ config, log }: Context): DaemonBuildService {
  const folders = [config.builds.dir, join(programFolder(), "daemon-builds")];
  return new DaemonBuildService({ folders, serverVersion: BUILD.version, log });
}

/** What daemons ask for: secrets of their nodes, and of the agents on them. */
function createDeliveries({ nodeSecrets }: NodeServices, { agentSecrets }: AgentServices): LinkHubDeps["secrets"] {
  const secretsOf = (key: string) => (readAgentSecretKey(key) === null ? nodeSecrets : agentSecrets);
  return { deliver: (nodeId, key) => secretsOf(key).deliver(nodeId, key) };
}

/** A deleted node's credential is void at once, and so is what it has open. */
function cutRemovedNodes(
  { changes, liveness }: NodeServices,
  { links, tunnels }: Pick<Fleet, "links" | "tunnels">,
): void {
  changes.listen(({ aspect, nodeId }) => {
    if (aspect !== "removed") return;
    links.disconnect(nodeId);
    tunnels.disconnect(nodeId);
    liveness.forget(nodeId);
  });
}
