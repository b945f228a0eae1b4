import { DomainError } from "@fairlead/protocol/errors";
import type { AgentId, NodeId, ProjectId } from "@fairlead/protocol/ids";
import type { KeyLimits } from "@fairlead/protocol/resources";
import type { NodeIdentities, TokenVerifier } from "./authenticate.ts";
import type { WorkerPrincipal } from "./principal.ts";
import type { TokenClaims } from "./tokens.ts";

/** Worker-plane tokens (design §5): what an agent on a node calls the inference host with, for its project; `agents/` issues them. */

export interface WorkerTokenOptions {
  readonly verified: TokenVerifier;
  readonly nodes: NodeIdentities;
  readonly agents: AgentIdentities;
  /** Named to callers who bring a platform credential to the inference host. */
  readonly publicUrl: string;
}

/** Agents, as far as a credential's check needs them; the agents' room. */
export interface AgentIdentities {
  /** @returns null for an agent that is unknown. */
  find(agentId: string): AgentIdentity | null | Promise<AgentIdentity | null>;
}

export interface AgentIdentity {
  readonly projectId: string;
  /** Where it is placed; null: nowhere. */
  readonly nodeId: string | null;
  /** Another one after each start and each move. */
  readonly run: number;
  /** It is to run: neither stopped nor being deleted. */
  readonly live: boolean;
  readonly limits: KeyLimits;
}

type WorkerClaims = Extract<TokenClaims, { readonly audience: "inference" }>;

export class WorkerTokens {
  readonly #options: WorkerTokenOptions;

  constructor(options: WorkerTokenOptions) {
    this.#options = options;
  }

  /** @throws DomainError `invalid_credential`, `expired_credential`; `unavailable` when it cannot be checked. */
  async authenticate(token: string): Promise<WorkerPrincipal> {
    const claims = await this.#options.verified.verify(token);
    if (claims.audience !== "inference") throw this.#platformCredential();
    await this.#confirmNode(claims);
    const agent = await this.#options.agents.find(claims.agentId);
    if (agent === null || !isSameRun(agent, claims)) {
      const message =
        "The agent of this worker-plane token was stopped, started anew, moved or deleted; use the token that it has now.";
      throw new DomainError("invalid_credential", message);
    }
    return {
      kind: "worker",
      agentId: claims.agentId as AgentId,
      nodeId: claims.nodeId as NodeId,
      projectId: claims.projectId as ProjectId,
      limits: agent.limits,
    };
  }

  async #confirmNode(claims: WorkerClaims): Promise<void> {
    const node = await this.#options.nodes.find(claims.nodeId);
    const same = node?.projectId === claims.projectId && node.signingKeyThumbprint === claims.keyThumbprint;
    if (!same) {
      const message =
        "The node of this worker-plane token was deleted or has enrolled anew; use the token that it has now.";
      throw new DomainError("invalid_credential", message);
    }
    if (node.projectDeleting === true) {
      throw new DomainError("invalid_credential", "The project of this worker-plane token is being deleted.");
    }
  }

  #platformCredential(): DomainError {
    const message = `This is a session or node token; it works on the platform host, ${this.#options.publicUrl}. Send a project key here.`;
    return new DomainError("invalid_credential", message);
  }
}

function isSameRun({ projectId, nodeId, run, live }: AgentIdentity, claims: WorkerClaims): boolean {
  return live && projectId === claims.projectId && nodeId === claims.nodeId && run === claims.run;
}
