import { DomainError } from "@fairlead/protocol/errors";
import { GATEWAY_PATH, type WorkloadConnect } from "@fairlead/protocol/workload-connect";
import type { Kysely } from "kysely";
import type { AuditService } from "../../access/audit/audit-service.ts";
import type { ProjectAccess } from "../../access/auth/access.ts";
import type { UserPrincipal } from "../../access/auth/principal.ts";
import type { ConnectTokens } from "../../access/auth/tokens/connect-token.ts";
import type { Database } from "../../installation/db/tables/schema.ts";
import type { AgentService } from "../agents/agent-service.ts";
import { type AgentRecord, agentResource, workloadName } from "../agents/definition/agent.ts";

export interface AgentConnectDeps {
  readonly db: Kysely<Database>;
  readonly agents: Pick<AgentService, "get">;
  readonly access: ProjectAccess;
  readonly connectTokens: Pick<ConnectTokens, "issue">;
  readonly audit: AuditService;
  readonly publicUrl: string;
}

const RETRY_SECONDS = 5;

/** `GET /v1/agents/{id}/connect`: the URL and token of an agent, through its node. */
export class AgentConnectService {
  readonly #deps: AgentConnectDeps;

  constructor(deps: AgentConnectDeps) {
    this.#deps = deps;
  }

  /** @throws DomainError not_found, permission_denied, invalid_credential, no_running_engine */
  async connect(caller: UserPrincipal, agentId: string): Promise<WorkloadConnect> {
    const { agents, access, connectTokens, publicUrl } = this.#deps;
    const agent = await agents.get(caller, agentId);
    const { projectId, placement, lifecycleState } = agent;
    await access.require(caller, projectId, "agent.connect");
    const { sessionId, userId } = caller;
    if (sessionId === undefined)
      throw new DomainError("invalid_credential", "Sign in first, because the token belongs to a session.");
    if (placement === null || lifecycleState !== "running") {
      const message = `This agent is not running; it is ${lifecycleState}.`;
      throw new DomainError("no_running_engine", message, { retryAfterSeconds: RETRY_SECONDS });
    }
    const { nodeId } = placement;
    const holder = { userId, sessionId };
    const authToken = await connectTokens.issue({ nodeId, workload: workloadName(agentId), projectId, holder });
    await this.#record(caller, agent);
    return { gatewayUrl: publicUrl + GATEWAY_PATH(nodeId), authToken };
  }

  async #record(actor: UserPrincipal, agent: AgentRecord): Promise<void> {
    const { db, audit } = this.#deps;
    const { projectId } = agent;
    await audit.record(db, { actor, action: "agent.connect", projectId, resource: agentResource(agent) });
  }
}
