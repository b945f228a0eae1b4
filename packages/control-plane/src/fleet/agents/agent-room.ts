import type { Kysely } from "kysely";
import type { Logger } from "pino";
import type { AuditService } from "../../access/audit/audit-service.ts";
import type { ProjectAccess } from "../../access/auth/access.ts";
import type { Database } from "../../installation/db/tables/schema.ts";
import type { Ports } from "../../installation/installation-room.ts";
import type { BoundCounters } from "../../telemetry/bounds/bound-counters.ts";
import type { AgentHosts } from "../nodes/agents/agent-hosts.ts";
import type { EventRooms } from "../nodes/records/event-rooms.ts";
import { OwnedSecretService } from "../secrets/owned-secret-service.ts";
import type { SecretService } from "../secrets/secret-service.ts";
import { AgentSecretOwners } from "./access/agent-secret-owners.ts";
import { AgentRemovalService } from "./agent-removal-service.ts";
import { AgentService } from "./agent-service.ts";
import { AgentUpdateService } from "./agent-update-service.ts";
import { AgentInputs } from "./definition/agent-inputs.ts";
import { AgentSecretNeeds } from "./definition/agent-secret-needs.ts";
import { ConnectorService } from "./definition/connector-service.ts";
import type { ConnectorCatalogue } from "./definition/connectors.ts";
import { AgentActionsService, type AgentPeople } from "./life/agent-actions-service.ts";
import { AgentTransitionService } from "./life/agent-transition-service.ts";
import type { AgentChangeFeed } from "./records/agent-change-feed.ts";
import { agentStores } from "./records/agent-stores.ts";

export interface AgentOptions extends Ports {
  readonly db: Kysely<Database>;
  readonly hosts: AgentHosts;
  readonly rooms: EventRooms;
  readonly bounds: Pick<BoundCounters, "reached">;
  readonly connectors: ConnectorCatalogue;
  readonly secrets: SecretService;
  readonly changes: AgentChangeFeed;
  readonly access: ProjectAccess;
  readonly audit: AuditService;
  readonly people: AgentPeople;
  readonly log: Logger;
}

export type AgentServices = ReturnType<typeof createAgentServices>;

export function createAgentServices(deps: AgentOptions) {
  const stores = agentStores(deps.db);
  const inputs = new AgentInputs({ ...deps, agents: stores.agents, needs: new AgentSecretNeeds(deps) });
  const agents = new AgentService({ ...deps, stores, inputs });
  const owners = new AgentSecretOwners({ ...deps, stores, agents });
  const agentTransitions = new AgentTransitionService({ ...deps, stores });
  const agentLife = new AgentActionsService({ ...deps, agents, courses: agentTransitions, inputs });
  return {
    agents,
    agentLife,
    agentChanging: new AgentUpdateService({ ...deps, life: agentLife, inputs }),
    agentTransitions,
    agentRemoval: new AgentRemovalService({ stores, life: agentLife }),
    agentSecrets: new OwnedSecretService({ ...deps, owners }),
    connectors: new ConnectorService(deps),
  };
}
