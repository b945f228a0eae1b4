import type { Clock } from "@fairlead/protocol/clock";
import type { IdSource } from "@fairlead/protocol/ids";
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import type { AuditService } from "../audit/audit-service.ts";
import type { ProjectAccess } from "../auth/access.ts";
import type { WriteTogether } from "../db/opened-handle.ts";
import type { Database } from "../db/schema.ts";
import { OwnedSecretService } from "../secrets/owned-secret-service.ts";
import type { SecretService } from "../secrets/secret-service.ts";
import { AgentDeparture } from "./agent-departure.ts";
import type { AgentHosts } from "./agent-hosts.ts";
import type { AgentHistories, AgentsOnNode } from "./agents-on-node.ts";
import { DesiredDaemonService, type ListedBuilds } from "./desired-daemon-service.ts";
import { NodeEngineDirectory } from "./engine-directory.ts";
import { EnrollmentService, type IdentityIssuer, type OfferedBuilds } from "./enrollment-service.ts";
import { IdentityWatch } from "./identity-watch.ts";
import { NodeAgentHosts } from "./node-agent-hosts.ts";
import { NodeChangeService } from "./node-change-service.ts";
import { NodeChanges } from "./node-changes.ts";
import { type NodeCalls, NodeDrainService } from "./node-drain-service.ts";
import { NodeIdentities } from "./node-identities.ts";
import { NodeLifeService, type People } from "./node-life-service.ts";
import { DEFAULT_LIVENESS, type LivenessOptions, NodeLiveness } from "./node-liveness.ts";
import { NodeMachineService } from "./node-machine-service.ts";
import type { NodeMachines } from "./node-machines.ts";
import { NodePlanner } from "./node-planner.ts";
import { NodeRemovalService } from "./node-removal-service.ts";
import { NodeReportService } from "./node-report-service.ts";
import { NodeSecretOwners } from "./node-secret-owners.ts";
import { NodeService, type TakenNames } from "./node-service.ts";
import { NodeStatusService } from "./node-status-service.ts";
import { nodeStores } from "./node-stores.ts";
import { NodeViewService } from "./node-view-service.ts";

export interface NodeServicesDeps {
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
  readonly people: People;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly log: Logger;
  readonly machines: NodeMachines;
  readonly installation: { readonly id: string; readonly epoch: string };
  readonly publicUrl: string;
  readonly builds: OfferedBuilds & ListedBuilds;
  readonly liveness?: LivenessOptions;
  readonly drainMs?: number;
}

/** All that this room offers to the composition root, joined. */
export interface NodeServices {
  readonly nodes: NodeService;
  readonly nodeChanges: NodeChangeService;
  readonly nodeSecrets: OwnedSecretService;
  readonly life: NodeLifeService;
  readonly drain: NodeDrainService;
  readonly views: NodeViewService;
  readonly desiredDaemons: DesiredDaemonService;
  readonly removal: NodeRemovalService;
  readonly enrollment: EnrollmentService;
  readonly reports: NodeReportService;
  readonly status: NodeStatusService;
  readonly liveness: NodeLiveness;
  readonly engines: NodeEngineDirectory;
  /** For the room of agents. */
  readonly agentHosts: AgentHosts;
  /** For the room that rents machines. */
  readonly nodeMachines: NodeMachineService;
  readonly changes: NodeChanges;
}

export function createNodeServices(deps: NodeServicesDeps): NodeServices {
  const { access, audit, clock, ids, log, installation } = deps;
  const stores = nodeStores(deps.db);
  const changes = new NodeChanges();
  const status = new NodeStatusService({ stores, changes, clock, ids, log });
  const nodes = new NodeService({ ...deps, stores });
  const planner = new NodePlanner(deps);
  const parts = { ...deps, stores, nodes, changes, planner };
  const nodeChanges = new NodeChangeService({ ...parts, status });
  const desiredDaemons = new DesiredDaemonService({ ...parts, installationId: installation.id });
  const enrollment = new EnrollmentService({
    stores,
    nodes,
    status,
    access,
    audit,
    issuer: deps.issuer,
    clock,
    ids,
    installationId: installation.id,
    publicUrl: deps.publicUrl,
    builds: deps.builds,
  });
  const secretOwners = new NodeSecretOwners(parts);
  const departure = new AgentDeparture({ stores, changes, epoch: installation.epoch });
  const drain = new NodeDrainService({ ...deps, stores, status, agents: departure });
  return {
    nodes,
    status,
    changes,
    nodeChanges,
    desiredDaemons,
    nodeSecrets: new OwnedSecretService({ owners: secretOwners, secrets: deps.secrets, audit }),
    drain,
    life: new NodeLifeService({ ...deps, stores, nodes, planner, status, drain, changes }),
    views: new NodeViewService(stores),
    removal: new NodeRemovalService({ stores, drain, nodeChanges }),
    enrollment,
    agentHosts: new NodeAgentHosts({ stores, planner, changes, epoch: installation.epoch }),
    nodeMachines: new NodeMachineService({ stores, status, enrollment, changes, clock, ids }),
    reports: new NodeReportService({
      stores,
      histories: deps.histories,
      status,
      identities: new IdentityWatch({ status, clock }),
      daemons: desiredDaemons,
      changes,
      clock,
      ids,
      installationId: installation.id,
      epoch: installation.epoch,
    }),
    liveness: new NodeLiveness({ ...deps, stores, status, options: deps.liveness ?? DEFAULT_LIVENESS }),
    engines: new NodeEngineDirectory({ stores, changes, clock }),
  };
}

/** Needed before the services: whoever authenticates a node's token asks here whether the node still stands behind it. */
export function createNodeIdentities(db: Kysely<Database>): NodeIdentities {
  return new NodeIdentities(nodeStores(db).nodes);
}
