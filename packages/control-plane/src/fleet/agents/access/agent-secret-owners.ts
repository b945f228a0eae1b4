import type { Kysely } from "kysely";
import type { ProjectAccess } from "../../../access/auth/access.ts";
import type { UserPrincipal } from "../../../access/auth/principal.ts";
import type { Database } from "../../../installation/db/tables/schema.ts";
import type { AgentHostFacts, AgentHosts, Replanned } from "../../nodes/agents/agent-hosts.ts";
import type { FoundOwner, SecretOwners } from "../../secrets/owned-secret-service.ts";
import { readAgentSecretKey } from "../../secrets/secret-key.ts";
import type { SecretOwner } from "../../secrets/secret-service.ts";
import type { AgentService } from "../agent-service.ts";
import { type AgentRecord, agentDeleting, agentNotFound, agentResource, isLive } from "../definition/agent.ts";
import { isThere } from "../life/placement.ts";
import type { AgentStores } from "../records/agent-stores.ts";

export interface AgentSecretOwnersDeps {
  readonly stores: AgentStores;
  readonly agents: Pick<AgentService, "get">;
  readonly hosts: AgentHosts;
  readonly access: ProjectAccess;
}

const OPERATION = "agent.secrets";

/** Agents as what has secrets: their own, and those of their connectors. */
export class AgentSecretOwners implements SecretOwners {
  readonly #deps: AgentSecretOwnersDeps;

  constructor(deps: AgentSecretOwnersDeps) {
    this.#deps = deps;
  }

  async find(caller: UserPrincipal, id: string): Promise<FoundOwner> {
    const agent = await this.#require(caller, id);
    return found(agent, await this.#deps.hosts.facts(agent.nodeId));
  }

  async change<T>(
    caller: UserPrincipal,
    id: string,
    work: (transaction: Kysely<Database>, found: FoundOwner) => Promise<T>,
  ): Promise<T> {
    const { access, hosts, stores } = this.#deps;
    for (;;) {
      const { projectId, nodeId } = await this.#require(caller, id);
      const host = await hosts.facts(nodeId);
      const done = await stores.transaction(async (within, transaction) => {
        await access.requireWithin(transaction, { caller, projectId, operation: OPERATION });
        const agent = await within.agents.findForUpdate(id);
        if (agent === null) throw agentNotFound();
        if (agent.lifecycleState === "deleting") throw agentDeleting();
        // It was moved in between, and the secret would be sealed for the wrong node.
        if (agent.nodeId !== nodeId) return null;
        const result = await work(transaction, found(agent, host));
        return { result, replanned: await this.#replan(transaction, agent) };
      });
      if (done === null) continue;
      if (done.replanned?.changed === true) hosts.announce(nodeId, projectId);
      return done.result;
    }
  }

  /** Only while the agent is to run on that node: what it was given there does not follow it elsewhere, nor outlive its stop. */
  async deliverable(
    nodeId: string,
    key: string,
  ): Promise<{ readonly owner: SecretOwner; readonly name: string } | null> {
    const asked = readAgentSecretKey(key);
    const agent = asked === null ? null : await this.#deps.stores.agents.find(asked.ownerId);
    if (asked === null || agent === null || !isLive(agent) || agent.placement?.nodeId !== nodeId) return null;
    return { owner: agentSecretOwner(agent, await this.#deps.hosts.facts(nodeId)), name: asked.name };
  }

  async #require(caller: UserPrincipal, id: string): Promise<AgentRecord> {
    const agent = await this.#deps.agents.get(caller, id);
    await this.#deps.access.require(caller, agent.projectId, OPERATION);
    return agent;
  }

  async #replan(transaction: Kysely<Database>, agent: AgentRecord): Promise<Replanned | null> {
    return isLive(agent) ? this.#deps.hosts.replanWithin(transaction, agent.nodeId) : null;
  }
}

/** @param host on which it is to run */
export function agentSecretOwner({ id }: AgentRecord, host: AgentHostFacts | null): SecretOwner {
  if (!isThere(host)) return { id, node: null };
  const { nodeId, directSecrets, sealingKey } = host;
  return { id, node: { id: nodeId, directSecrets, sealingKey } };
}

function found(agent: AgentRecord, host: AgentHostFacts | null): FoundOwner {
  return { owner: agentSecretOwner(agent, host), projectId: agent.projectId, resource: agentResource(agent) };
}
