import type { WorkerPrincipal } from "@fairlead/inference/ports/inference-caller";
import { DomainError } from "@fairlead/protocol/errors";
import type { KeyLimits } from "@fairlead/protocol/resources";
import type { AgentId, NodeId, ProjectId } from "@fairlead/protocol/values/ids";
import type { NodeIdentities, TokenVerifier } from "../authenticate.ts";
import type { TokenClaims } from "./tokens.ts";

/** Worker-plane tokens, with which an agent calls the inference host for its project. Issued by `agents/`. */

export interface WorkerTokenOptions {
  readonly verified: TokenVerifier;
  readonly nodes: NodeIdentities;
  readonly agents: AgentIdentities;
  /** Shown to callers who send a platform credential to the inference host. */
  readonly publicUrl: string;
}

/** Agents, implemented by the agents room. */
export interface AgentIdentities {
  /** @returns null for an unknown agent. */
  find(agentId: string): AgentIdentity | null | Promise<AgentIdentity | null>;
}

export interface AgentIdentity {
  readonly projectId: string;
  /** Its node; null: not placed. */
  readonly nodeId: string | null;
  /** Changes with each start and move. */
  readonly run: number;
  /** Neither stopped nor being deleted. */
  readonly live: boolean;
  readonly limits: KeyLimits;
}

type WorkerClaims = Extract<TokenClaims, { readonly audience: "inference" }>;

export class WorkerTokens {
  readonly #options: WorkerTokenOptions;

  constructor(options: WorkerTokenOptions) {
    this.#options = options;
  }

  /** @throws DomainError `invalid_credential`, `expired_credential`; `unavailable` if it cannot be checked. */
  async authenticate(token: string): Promise<WorkerPrincipal> {
    const claims = await this.#options.verified.verify(token);
    if (claims.audience !== "inference") throw this.#platformCredential();
    await this.#confirmNode(claims);
    const agent = await this.#options.agents.find(claims.agentId);
    if (agent === null || !isSameRun(agent, claims)) {
      const message =
        "The agent of this worker-plane token was stopped, restarted, moved or deleted. Use its current token.";
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
      const message = "The node of this worker-plane token was deleted or enrolled again. Use the current token.";
      throw new DomainError("invalid_credential", message);
    }
    if (node.projectDeleting === true) {
      throw new DomainError("invalid_credential", "The project of this worker-plane token is being deleted.");
    }
  }

  #platformCredential(): DomainError {
    const message = `This is a session or node token, which works on the platform host, ${this.#options.publicUrl}. Send a project key here.`;
    return new DomainError("invalid_credential", message);
  }
}

function isSameRun({ projectId, nodeId, run, live }: AgentIdentity, claims: WorkerClaims): boolean {
  return live && projectId === claims.projectId && nodeId === claims.nodeId && run === claims.run;
}
