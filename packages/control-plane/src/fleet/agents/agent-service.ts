import type { AgentConfig } from "@fairlead/protocol/agents";
import { DomainError } from "@fairlead/protocol/errors";
import { NO_LIMITS } from "@fairlead/protocol/key-limits";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { IdSource } from "@fairlead/protocol/values/ids";
import type { Kysely } from "kysely";
import type { AuditService } from "../../access/audit/audit-service.ts";
import type { ProjectAccess } from "../../access/auth/access.ts";
import type { UserPrincipal } from "../../access/auth/principal.ts";
import { always, type Once } from "../../access/idempotency/once.ts";
import { type KeyLimitsChange, mergeLimits } from "../../access/keys/key-limits.ts";
import type { HistoryQuery } from "../../installation/db/history-query.ts";
import type { Database } from "../../installation/db/tables/schema.ts";
import { type AgentRecord, agentNotFound, agentResource, NOTHING_OBSERVED } from "./definition/agent.ts";
import type { AgentInputs } from "./definition/agent-inputs.ts";
import type { AgentEventRecord } from "./records/agent-event-store.ts";
import type { StorePage } from "./records/agent-store.ts";
import type { AgentStores } from "./records/agent-stores.ts";

export interface CreateAgent {
  readonly projectId: string;
  readonly name: string;
  readonly guest: string;
  readonly runtimeProvider: string;
  readonly connectorSlugs: readonly string[];
  readonly config: AgentConfig;
  readonly limits: KeyLimitsChange;
}

export interface AgentServiceDeps {
  readonly stores: AgentStores;
  readonly inputs: AgentInputs;
  readonly access: ProjectAccess;
  readonly audit: AuditService;
  readonly clock: Clock;
  readonly ids: IdSource;
}

/** Operations that do not change where an agent runs: create, get, list, events. */
export class AgentService {
  readonly #deps: AgentServiceDeps;

  constructor(deps: AgentServiceDeps) {
    this.#deps = deps;
  }

  /** A new agent does not run until it is started. @throws DomainError not_found, permission_denied, invalid_request */
  async create(caller: UserPrincipal, input: CreateAgent, once: Once<AgentRecord> = always): Promise<AgentRecord> {
    const { access, inputs, stores } = this.#deps;
    const { projectId } = input;
    await access.require(caller, projectId, "agent.create");
    const { nodeId } = await inputs.hostOf(projectId, input.runtimeProvider);
    inputs.checkConnectors(input.connectorSlugs);
    return stores.transaction(async (within, transaction) => {
      await access.requireWithin(transaction, { caller, projectId, operation: "agent.create" });
      return once(transaction, async () => {
        const agent = this.#newRecord(caller, input, nodeId);
        await within.agents.insert(agent);
        const { id: agentId, createdAt: at, lifecycleState, observed } = agent;
        const id = this.#deps.ids.next("event");
        const { message } = observed;
        await within.events.append([{ id, agentId, at, kind: "created", lifecycleState, message }]);
        await this.#recordCreation(transaction, caller, agent);
        return agent;
      });
    });
  }

  /** For members of its project. @throws DomainError not_found */
  async get(caller: UserPrincipal, id: string): Promise<AgentRecord> {
    const agent = await this.#deps.stores.agents.find(id);
    if (agent === null) throw agentNotFound();
    try {
      await this.#deps.access.require(caller, agent.projectId, "agent.read");
    } catch (error) {
      // The error text must not reveal to strangers that the agent exists.
      throw error instanceof DomainError && error.code === "not_found" ? agentNotFound() : error;
    }
    return agent;
  }

  /** Oldest first. @throws DomainError not_found */
  async list(caller: UserPrincipal, projectId: string, page: StorePage): Promise<AgentRecord[]> {
    await this.#deps.access.require(caller, projectId, "agent.read");
    return this.#deps.stores.agents.list(projectId, page);
  }

  /** Events, newest first. @throws DomainError not_found */
  async events(caller: UserPrincipal, id: string, query: HistoryQuery): Promise<AgentEventRecord[]> {
    const agent = await this.get(caller, id);
    return this.#deps.stores.events.list(agent.id, query);
  }

  #newRecord(caller: UserPrincipal, input: CreateAgent, nodeId: string): AgentRecord {
    const now = this.#deps.clock.now();
    return {
      id: this.#deps.ids.next("agent"),
      projectId: input.projectId,
      userId: caller.userId,
      name: input.name,
      guest: input.guest,
      nodeId,
      connectorSlugs: [...new Set(input.connectorSlugs)],
      config: input.config,
      limits: mergeLimits(NO_LIMITS, input.limits),
      wanted: false,
      run: 0,
      placement: null,
      lifecycleState: "created",
      lifecycleSince: now,
      observed: { ...NOTHING_OBSERVED, message: "Not started." },
      createdAt: now,
      updatedAt: now,
    };
  }

  async #recordCreation(transaction: Kysely<Database>, actor: UserPrincipal, agent: AgentRecord): Promise<void> {
    const { projectId, guest, nodeId } = agent;
    await this.#deps.audit.record(transaction, {
      actor,
      action: "agent.create",
      projectId,
      resource: agentResource(agent),
      detail: { guest, nodeId, connectors: agent.connectorSlugs.join(",") },
    });
  }
}
