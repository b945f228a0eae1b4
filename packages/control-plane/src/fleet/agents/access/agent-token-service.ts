import type { WorkerTokenAnswer } from "@fairlead/protocol/daemon-link";
import type { NodeIdentities } from "../../../access/auth/authenticate.ts";
import type { TokenService } from "../../../access/auth/tokens/tokens.ts";
import type { AgentIdentities } from "../../../access/auth/tokens/worker-token.ts";

export interface AgentTokenDeps {
  readonly tokens: Pick<TokenService, "issueWorker">;
  /** Neither is remembered: a token must not be issued for what has ended. */
  readonly nodes: NodeIdentities;
  readonly agents: AgentIdentities;
}

/** Short, since the daemon renews it in place. */
export const WORKER_TOKEN_TTL_SECONDS = 3600;

/** What agents call the inference host with: given to the daemons that run them. */
export class AgentTokenService {
  readonly #deps: AgentTokenDeps;

  constructor(deps: AgentTokenDeps) {
    this.#deps = deps;
  }

  /**
   * Good while the node keeps the identity that it has now, and the agent its run there.
   * @param nodeId of the daemon that asks: it gets tokens of agents that are placed on it, and of no others.
   */
  async issue(nodeId: string, agentId: string): Promise<WorkerTokenAnswer> {
    const { tokens, nodes, agents } = this.#deps;
    const [agent, node] = await Promise.all([agents.find(agentId), nodes.find(nodeId)]);
    const here = agent !== null && agent.live && agent.nodeId === nodeId;
    if (!here || node === null || node.projectDeleting === true || node.projectId !== agent.projectId) {
      return { state: "none" };
    }
    const { projectId, run } = agent;
    const { signingKeyThumbprint: keyThumbprint } = node;
    const ttlSeconds = WORKER_TOKEN_TTL_SECONDS;
    const token = await tokens.issueWorker({ agentId, nodeId, projectId, keyThumbprint, run, ttlSeconds });
    return { state: "issued", token, expiresIn: ttlSeconds };
  }
}
