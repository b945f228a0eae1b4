import type { AgentLimits, KeyLimits } from "@fairlead/protocol/resources";
import type { Kysely } from "kysely";
import type { AuditService } from "../../../access/audit/audit-service.ts";
import type { ProjectAccess } from "../../../access/auth/access.ts";
import type { UserPrincipal } from "../../../access/auth/principal.ts";
import { changedLimits, type KeyLimitsChange, mergeLimits } from "../../../access/keys/key-limits.ts";
import type { Database } from "../../../installation/db/tables/schema.ts";
import type { AgentService } from "../agent-service.ts";
import { type AgentRecord, agentNotFound, agentResource } from "../definition/agent.ts";
import type { AgentChangeFeed } from "../records/agent-change-feed.ts";
import { type AgentStores, agentStores } from "../records/agent-stores.ts";

export interface AgentLimitsDeps {
  readonly db: Kysely<Database>;
  readonly agents: Pick<AgentService, "get">;
  readonly changes: AgentChangeFeed;
  readonly access: ProjectAccess;
  readonly audit: AuditService;
  /** What agents' calls have cost. */
  readonly billing: { spent(agentIds: readonly string[]): Promise<ReadonlyMap<string, AgentLimits["spent"]>> };
}

const NOTHING_SPENT: AgentLimits["spent"] = { total: 0, daily: 0, monthly: 0 };

/** How much agents may call and spend: as project keys, by the same code. */
export class AgentLimitsService {
  readonly #deps: AgentLimitsDeps;
  readonly #stores: AgentStores;

  constructor(deps: AgentLimitsDeps) {
    this.#deps = deps;
    this.#stores = agentStores(deps.db);
  }

  /** @throws DomainError not_found */
  async get(caller: UserPrincipal, id: string): Promise<AgentLimits> {
    const { limits } = await this.#deps.agents.get(caller, id);
    return this.#tell(id, limits);
  }

  /**
   * What is absent stays as it is; null lifts. It counts from the next call on.
   * @throws DomainError not_found, permission_denied, project_deleting
   */
  async update(caller: UserPrincipal, id: string, change: KeyLimitsChange): Promise<AgentLimits> {
    const { agents, changes, access } = this.#deps;
    const { projectId } = await agents.get(caller, id);
    await access.require(caller, projectId, "agent.update");
    const limits = await this.#stores.transaction(async (within, transaction) => {
      await access.requireWithin(transaction, { caller, projectId, operation: "agent.update" });
      const agent = await within.agents.findForUpdate(id);
      if (agent === null) throw agentNotFound();
      const after = mergeLimits(agent.limits, change);
      const fields = changedLimits(agent.limits, after);
      if (fields.length === 0) return agent.limits;
      await within.agents.setLimits(projectId, id, after);
      await this.#deps.audit.record(transaction, entry(caller, agent, fields));
      return after;
    });
    changes.emit({ agentId: id, projectId });
    return this.#tell(id, limits);
  }

  async #tell(id: string, limits: KeyLimits): Promise<AgentLimits> {
    const spent = await this.#deps.billing.spent([id]);
    return { ...limits, spent: spent.get(id) ?? NOTHING_SPENT };
  }
}

function entry(actor: UserPrincipal, agent: AgentRecord, fields: readonly string[]) {
  const { projectId } = agent;
  const detail = { fields: fields.join(",") };
  return { actor, action: "agent.limits" as const, projectId, resource: agentResource(agent), detail };
}
