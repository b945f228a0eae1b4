import type { Clock } from "@fairlead/protocol/clock";
import type { IdSource } from "@fairlead/protocol/ids";
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import type { AuditService } from "../audit/audit-service.ts";
import type { ProjectAccess } from "../auth/access.ts";
import type { Database } from "../db/schema.ts";
import type { AgentHosts } from "../nodes/agent-hosts.ts";
import { OwnedSecretService } from "../secrets/owned-secret-service.ts";
import type { SecretService } from "../secrets/secret-service.ts";
import { AgentChangeService } from "./agent-change-service.ts";
import type { AgentChanges } from "./agent-changes.ts";
import { AgentCourseService } from "./agent-course-service.ts";
import { AgentInputs } from "./agent-inputs.ts";
import { AgentLifeService, type People } from "./agent-life-service.ts";
import { AgentRemovalService } from "./agent-removal-service.ts";
import { AgentSecretNeeds } from "./agent-secret-needs.ts";
import { AgentSecretOwners } from "./agent-secret-owners.ts";
import { AgentService } from "./agent-service.ts";
import { agentStores } from "./agent-stores.ts";
import { ConnectorService } from "./connector-service.ts";
import type { ConnectorCatalogue } from "./connectors.ts";

export interface AgentServicesDeps {
  readonly db: Kysely<Database>;
  readonly hosts: AgentHosts;
  readonly connectors: ConnectorCatalogue;
  readonly secrets: SecretService;
  readonly changes: AgentChanges;
  readonly access: ProjectAccess;
  readonly audit: AuditService;
  readonly people: People;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly log: Logger;
}

/** All that this room offers to the composition root, joined. */
export interface AgentServices {
  readonly agents: AgentService;
  readonly agentLife: AgentLifeService;
  readonly agentChanging: AgentChangeService;
  readonly agentCourses: AgentCourseService;
  readonly agentRemoval: AgentRemovalService;
  readonly agentSecrets: OwnedSecretService;
  readonly connectors: ConnectorService;
}

export function createAgentServices(deps: AgentServicesDeps): AgentServices {
  const stores = agentStores(deps.db);
  const inputs = new AgentInputs({ ...deps, needs: new AgentSecretNeeds(deps) });
  const agents = new AgentService({ ...deps, stores, inputs });
  const owners = new AgentSecretOwners({ ...deps, stores, agents });
  const agentCourses = new AgentCourseService({ ...deps, stores });
  const agentLife = new AgentLifeService({ ...deps, agents, courses: agentCourses, inputs });
  return {
    agents,
    agentLife,
    agentChanging: new AgentChangeService({ ...deps, life: agentLife, inputs }),
    agentCourses,
    agentRemoval: new AgentRemovalService({ stores, life: agentLife }),
    agentSecrets: new OwnedSecretService({ ...deps, owners }),
    connectors: new ConnectorService(deps),
  };
}
