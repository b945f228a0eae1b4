import type { AuditEntry } from "../audit/audit.ts";
import type { AuditService } from "../audit/audit-service.ts";
import type { Operation, ProjectAccess } from "../auth/access.ts";
import type { UserPrincipal } from "../auth/principal.ts";
import type { AgentHosts } from "../nodes/agent-hosts.ts";
import { type AgentRecord, agentDeleting, agentNotFound, agentResource, isLive } from "./agent.ts";
import type { AgentCourseService, Order } from "./agent-course-service.ts";
import { type AgentInputs, checkHost } from "./agent-inputs.ts";
import type { AgentService } from "./agent-service.ts";

export interface AgentLifeDeps {
  readonly agents: Pick<AgentService, "get">;
  readonly courses: AgentCourseService;
  readonly inputs: AgentInputs;
  readonly hosts: Pick<AgentHosts, "facts">;
  readonly access: ProjectAccess;
  readonly audit: AuditService;
  /** Who asked, for the agent's history. */
  readonly people: People;
}

export interface People {
  get(userId: string): Promise<{ readonly email: string }>;
}

/** What a person asks for, once it is known that they may. */
export interface Asked {
  readonly agent: AgentRecord;
  /** For people. */
  readonly who: string;
}

/** Starts, stops and deletes agents on people's word. Each asks for an end that may be there already. */
export class AgentLifeService {
  readonly #deps: AgentLifeDeps;

  constructor(deps: AgentLifeDeps) {
    this.#deps = deps;
  }

  /**
   * It is to run from now on; one that has failed is started anew. Answers at once.
   * @throws DomainError not_found, permission_denied, missing_secrets, node_not_enrolled, daemon_too_old, agent_deleting
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

  /** It is not to run any more: its token is void at once, and its program gets its time to end. @throws DomainError not_found, permission_denied, agent_deleting */
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
   * As a stop; then it is forgotten, once its node has reported it gone.
   * @param force do not wait for a node that does not answer: where that still works, the agent runs there until it is back.
   * @throws DomainError not_found, permission_denied
   */
  async delete(caller: UserPrincipal, id: string, force: boolean): Promise<void> {
    const { who } = await this.ask(caller, id, "agent.delete");
    await this.#deps.courses.order(id, this.#deletion({ actor: caller, detail: { force } }, { who, force }));
  }

  /** The same for whoever has judged that it goes. */
  async remove(id: string, entry: Pick<AuditEntry, "actor" | "detail">, who: string): Promise<void> {
    await this.#deps.courses.order(id, this.#deletion(entry, { who, force: false }));
  }

  /** @throws DomainError not_found, permission_denied */
  async ask(caller: UserPrincipal, id: string, operation: Operation): Promise<Asked> {
    const agent = await this.#deps.agents.get(caller, id);
    await this.#deps.access.require(caller, agent.projectId, operation);
    return { agent, who: (await this.#deps.people.get(caller.userId)).email };
  }

  /** @throws DomainError not_found, and what the order's judgement throws */
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
