import { DomainError } from "@fairlead/protocol/errors";
import type { Id, NodeId, ProjectId } from "@fairlead/protocol/ids";
import type { NodeIdentities, TokenVerifier } from "./authenticate.ts";
import type { WorkerPrincipal } from "./principal.ts";
import type { TokenService } from "./tokens.ts";

/** Worker-plane tokens (design §5): what a workload or an agent on a node calls the inference host with, for its project. */

export interface WorkerTokenOptions {
  readonly tokens: TokenService;
  readonly verified: TokenVerifier;
  readonly nodes: NodeIdentities;
  /** Named to callers who bring a platform credential to the inference host. */
  readonly publicUrl: string;
}

export interface WorkerIdentity {
  readonly subjectId: Id<"workload" | "agent">;
  readonly nodeId: string;
  readonly projectId: string;
}

/** Short, since the daemon renews it in place. */
export const WORKER_TOKEN_TTL_SECONDS = 3600;

export class WorkerTokens {
  readonly #options: WorkerTokenOptions;

  constructor(options: WorkerTokenOptions) {
    this.#options = options;
  }

  /** Good while the node keeps the identity that it has now. @throws DomainError not_found for a node that is not enrolled in the project. */
  async issue(worker: WorkerIdentity): Promise<{ readonly token: string; readonly expiresIn: number }> {
    const { tokens, nodes } = this.#options;
    const node = await nodes.find(worker.nodeId);
    if (node?.projectId !== worker.projectId) {
      throw new DomainError("not_found", "There is no such enrolled node in this project.");
    }
    const keyThumbprint = node.signingKeyThumbprint;
    const token = await tokens.issueWorker({ ...worker, keyThumbprint, ttlSeconds: WORKER_TOKEN_TTL_SECONDS });
    return { token, expiresIn: WORKER_TOKEN_TTL_SECONDS };
  }

  /** @throws DomainError `invalid_credential`, `expired_credential`; `unavailable` when it cannot be checked. */
  async authenticate(token: string): Promise<WorkerPrincipal> {
    const claims = await this.#options.verified.verify(token);
    if (claims.audience !== "inference") throw this.#platformCredential();
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
    return {
      kind: "worker",
      subjectId: claims.subjectId as WorkerPrincipal["subjectId"],
      nodeId: claims.nodeId as NodeId,
      projectId: claims.projectId as ProjectId,
    };
  }

  #platformCredential(): DomainError {
    const message = `This is a session or node token; it works on the platform host, ${this.#options.publicUrl}. Send a project key here.`;
    return new DomainError("invalid_credential", message);
  }
}
