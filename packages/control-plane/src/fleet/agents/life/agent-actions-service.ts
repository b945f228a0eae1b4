import type { AuditEntry } from "../../../access/audit/audit.ts";
import type { AuditService } from "../../../access/audit/audit-service.ts";
import type { Operation, ProjectAccess } from "../../../access/auth/access.ts";
import type { UserPrincipal } from "../../../access/auth/principal.ts";
import type { AgentHosts } from "../../nodes/agents/agent-hosts.ts";
import type { AgentService } from "../agent-service.ts";
import { type AgentRecord, agentDeleting, agentNotFound, agentResource, isLive } from "../definition/agent.ts";
import { type AgentInputs, checkHost } from "../definition/agent-inputs.ts";
import type { AgentTransitionService, Order } from "./agent-transition-service.ts";

export interface AgentActionsDeps {
  readonly agents: Pick<AgentService, "get">;
  readonly courses: AgentTransitionService;
  readonly inputs: AgentInputs;
  readonly hosts: Pick<AgentHosts, "facts">;
  readonly access: ProjectAccess;
  readonly audit: AuditService;
  /** Looks up names for the agent's history. */
  readonly people: AgentPeople;
}

export interface AgentPeople {
  get(userId: string): Promise<{ readonly email: string }>;
}

/** A request of a user who has the permission for it. */
export interface AgentActionRequest {
  readonly agent: AgentRecord;
  /** Shown to users. */
  readonly who: string;
}

/** Starts, stops and deletes agents for users. All operations are idempotent. */
export class AgentActionsService {
  readonly #deps: AgentActionsDeps;

  constructor(deps: AgentActionsDeps) {
    this.#deps = deps;
  }

  /**
   * Starts the agent; a failed one is restarted. Returns immediately.
   * @throws DomainError not_found, permission_denied, missing_secrets, node_not_enrolled, agent_deleting
   */
  async start(caller: UserPrincipal, id: string): Promise<AgentRecord> {
    const { hosts, inputs } = this.#deps;
    const { agent, who } = await this.ask(caller, id, "agent.start");
    const host = await hosts.facts(agent.nodeId);
    checkHost(host);
    await inputs.checkSecrets(agent, host);
    return this.carryOut(id, {
      judge: (now) => {
        if (now.lifecycleState === "deleting") throw agentDeleting();
        if (now.wanted && now.lifecycleState !== "failed") return null;
        const happening = { kind: "start_requested", event: "start_requested", message: `${who} started it.` } as const;
        return { wanted: true, anew: isLive(now), happening };
      },
      record: (transaction, now) => this.#record(transaction, { actor: caller, action: "agent.start" }, now),
    });
  }

  /**
   * Stops the agent. Its token is invalid immediately; its program gets time to exit.
   * @throws DomainError not_found, permission_denied, agent_deleting
   */
  async stop(caller: UserPrincipal, id: string): Promise<AgentRecord> {
    const { who } = await this.ask(caller, id, "agent.stop");
    return this.carryOut(id, {
      judge: (now) => {
        if (now.lifecycleState === "deleting") throw agentDeleting();
        if (!now.wanted) return null;
        const happening = { kind: "stop_requested", event: "stop_requested", message: `${who} stopped it.` } as const;
        return { wanted: false, happening };
      },
      record: (transaction, now) => this.#record(transaction, { actor: caller, action: "agent.stop" }, now),
    });
  }

  /**
   * Stops the agent and deletes it once its node reports it gone.
   * @param force do not wait for a node that does not respond: until it is back, the agent may still run there.
   * @throws DomainError not_found, permission_denied
   */
  async delete(caller: UserPrincipal, id: string, force: boolean): Promise<void> {
    const { who } = await this.ask(caller, id, "agent.delete");
    await this.#deps.courses.order(id, this.#deletion({ actor: caller, detail: { force } }, { who, force }));
  }

  /** Like `delete`, for callers that have already checked the permission. */
  async remove(id: string, entry: Pick<AuditEntry, "actor" | "detail">, who: string): Promise<void> {
    await this.#deps.courses.order(id, this.#deletion(entry, { who, force: false }));
  }

  /** @throws DomainError not_found, permission_denied */
  async ask(caller: UserPrincipal, id: string, operation: Operation): Promise<AgentActionRequest> {
    const agent = await this.#deps.agents.get(caller, id);
    await this.#deps.access.require(caller, agent.projectId, operation);
    return { agent, who: (await this.#deps.people.get(caller.userId)).email };
  }

  /** @throws DomainError not_found, and what the order's `judge` throws */
  async carryOut(id: string, order: Order): Promise<AgentRecord> {
    const agent = await this.#deps.courses.order(id, order);
    if (agent === null) throw agentNotFound();
    return agent;
  }

  #deletion(
    entry: Pick<AuditEntry, "actor" | "detail">,
    { who, force }: { readonly who: string; readonly force: boolean },
  ): Order {
    return {
      force,
      judge: (now) => {
        if (now.lifecycleState === "deleting" && !force) return null;
        const message = `${who} deleted it.`;
        return { happening: { kind: "delete_requested", event: "delete_requested", message } };
      },
      record: (transaction, now) => this.#record(transaction, { ...entry, action: "agent.delete" }, now),
    };
  }

  async #record(
    transaction: Parameters<Order["record"]>[0],
    entry: Pick<AuditEntry, "actor" | "action" | "detail">,
    agent: AgentRecord,
  ): Promise<void> {
    const { projectId } = agent;
    await this.#deps.audit.record(transaction, { ...entry, projectId, resource: agentResource(agent) });
  }
}
