import type { Kysely } from "kysely";
import type { Logger } from "pino";
import type { AuditService } from "../../access/audit/audit-service.ts";
import type { ProjectAccess } from "../../access/auth/access.ts";
import type { WriteTogether } from "../../installation/db/opened-handle.ts";
import type { Database } from "../../installation/db/tables/schema.ts";
import type { Ports } from "../../installation/installation-room.ts";
import type { BoundCounters } from "../../telemetry/bounds/bound-counters.ts";
import { OwnedSecretService } from "../secrets/owned-secret-service.ts";
import type { SecretService } from "../secrets/secret-service.ts";
import { NodeActionsService, type NodePeople } from "./actions/node-actions-service.ts";
import { type NodeCalls, NodeDrainService } from "./actions/node-drain-service.ts";
import { NodeMachineService } from "./actions/node-machine-service.ts";
import type { NodeMachines } from "./actions/node-machines.ts";
import { NodeRemovalService } from "./actions/node-removal-service.ts";
import { AgentStopWait } from "./agents/agent-stop-wait.ts";
import { NodeAgentHosts } from "./agents/node-agent-hosts.ts";
import type { AgentHistories, AgentsOnNode } from "./desired/agents-on-node.ts";
import { DaemonVersionService, type ListedBuilds } from "./desired/daemon-version-service.ts";
import { NodePlanner } from "./desired/node-planner.ts";
import { NodeUpdateService } from "./desired/node-update-service.ts";
import { EnrollmentService, type IdentityIssuer, type OfferedBuilds } from "./enrolment/enrollment-service.ts";
import { IdentityWatch } from "./enrolment/identity-watch.ts";
import { NodeChangeFeed } from "./node-change-feed.ts";
import { NodeRates } from "./node-rates.ts";
import { NodeService, type TakenNames } from "./node-service.ts";
import { NodeViewService } from "./node-view-service.ts";
import { NodeEngineDirectory } from "./observed/engine-directory.ts";
import { DEFAULT_NODE_LIVENESS, NodeLiveness, type NodeLivenessOptions } from "./observed/node-liveness.ts";
import { NodeReportService } from "./observed/node-report-service.ts";
import { NodeStatusService } from "./observed/node-status-service.ts";
import { NodeHistory } from "./records/node-history.ts";
import { StoredNodeIdentities } from "./records/node-identities.ts";
import { nodeStores } from "./records/node-stores.ts";
import { NodeSecretOwners } from "./secrets/node-secret-owners.ts";

export interface NodeOptions extends Ports {
  readonly db: Kysely<Database>;
  readonly writeTogether: WriteTogether;
  readonly names: TakenNames;
  readonly access: ProjectAccess;
  readonly audit: AuditService;
  readonly issuer: IdentityIssuer;
  readonly secrets: SecretService;
  readonly agents: AgentsOnNode;
  readonly histories: AgentHistories;
  readonly calls: NodeCalls;
  readonly people: NodePeople;
  readonly log: Logger;
  readonly machines: NodeMachines;
  readonly installation: { readonly id: string; readonly epoch: string };
  readonly publicUrl: string;
  readonly builds: OfferedBuilds & ListedBuilds;
  readonly bounds: Pick<BoundCounters, "reached">;
  readonly maxEventRows: number;
  readonly liveness?: NodeLivenessOptions;
  readonly drainMs?: number;
}

export type NodeServices = ReturnType<typeof createNodeServices>;

export function createNodeServices(deps: NodeOptions) {
  const { audit, clock, ids, log, installation } = deps;
  const stores = nodeStores(deps.db);
  const changes = new NodeChangeFeed();
  const rates = new NodeRates(deps);
  const history = new NodeHistory({ ...deps, events: stores.events, maxRows: deps.maxEventRows });
  const status = new NodeStatusService({ stores, changes, history, clock, ids, log });
  const nodes = new NodeService({ ...deps, stores });
  const planner = new NodePlanner(deps);
  const parts = { ...deps, stores, nodes, changes, planner };
  const nodeChanges = new NodeUpdateService({ ...parts, status });
  const daemonVersions = new DaemonVersionService({ ...parts, installationId: installation.id });
  const enrollment = new EnrollmentService({ ...parts, rates, status, installationId: installation.id });
  const secretOwners = new NodeSecretOwners(parts);
  const departure = new AgentStopWait({ stores, changes, epoch: installation.epoch });
  const drain = new NodeDrainService({ ...deps, stores, status, agents: departure });
  return {
    nodes,
    status,
    rates,
    changes,
    nodeChanges,
    daemonVersions,
    nodeSecrets: new OwnedSecretService({ owners: secretOwners, secrets: deps.secrets, audit }),
    drain,
    life: new NodeActionsService({ ...deps, stores, nodes, planner, status, drain, changes }),
    views: new NodeViewService(stores),
    removal: new NodeRemovalService({ stores, drain, nodeChanges }),
    enrollment,
    // For the room of agents.
    agentHosts: new NodeAgentHosts({ stores, planner, changes, epoch: installation.epoch }),
    // For the room that rents machines.
    nodeMachines: new NodeMachineService({ stores, status, enrollment, changes, clock, ids }),
    reports: new NodeReportService({
      ...parts,
      rates,
      history,
      status,
      identities: new IdentityWatch({ status, clock }),
      daemons: daemonVersions,
      installationId: installation.id,
      epoch: installation.epoch,
    }),
    liveness: new NodeLiveness({ ...deps, stores, status, options: deps.liveness ?? DEFAULT_NODE_LIVENESS }),
    engines: new NodeEngineDirectory({ stores, changes, clock }),
    // For the checks of credentials: whether the node of a token still exists.
    identities: new StoredNodeIdentities(stores.nodes),
  };
}
