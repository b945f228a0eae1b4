import { DomainError } from "@fairlead/protocol/errors";
import { CONNECT_TOKEN_TTL_SECONDS } from "@fairlead/protocol/workload-connect";
import { type Membership, mayDo } from "../access.ts";
import type { NodeIdentities, SignInSessions, TokenVerifier } from "../authenticate.ts";
import type { TokenService, WorkloadClaims } from "./tokens.ts";

/** Workload-connect tokens, which give external access to one workload of a node. The relay checks them on every request. */

export interface ConnectTokenOptions {
  readonly tokens: TokenService;
  readonly verified: TokenVerifier;
  readonly nodes: NodeIdentities;
  readonly sessions: SignInSessions;
  readonly memberships: ProjectMemberships;
}

/** Current project memberships. */
export interface ProjectMemberships {
  find(projectId: string, userId: string): Membership | null | Promise<Membership | null>;
}

export type ConnectRequest = Omit<WorkloadClaims, "audience" | "keyThumbprint">;

export class ConnectTokens {
  readonly #options: ConnectTokenOptions;

  constructor(options: ConnectTokenOptions) {
    this.#options = options;
  }

  /** Valid while the node keeps its current identity. @throws DomainError node_not_enrolled */
  async issue(request: ConnectRequest): Promise<string> {
    const node = await this.#options.nodes.find(request.nodeId);
    if (node?.projectId !== request.projectId) {
      throw new DomainError(
        "node_not_enrolled",
        "No daemon has enrolled for this node yet, so there is nothing to connect to.",
      );
    }
    const keyThumbprint = node.signingKeyThumbprint;
    const claims: WorkloadClaims = { audience: "workload", ...request, keyThumbprint };
    return this.#options.tokens.issueConnect(claims, CONNECT_TOKEN_TTL_SECONDS);
  }

  /**
   * @returns what the token gives access to. @throws DomainError `invalid_credential`, `expired_credential`; `unavailable` if it cannot be checked.
   */
  async authenticate(token: string): Promise<WorkloadClaims> {
    const claims = await this.#options.verified.verify(token);
    if (claims.audience !== "workload") {
      throw invalid(
        "The gateway accepts only the `authToken` of `GET /v1/nodes/{id}/workload-connect` or `GET /v1/agents/{id}/connect`.",
      );
    }
    await this.confirm(claims);
    return claims;
  }

  /** Called repeatedly while a connection is open. @throws DomainError `invalid_credential`, `unavailable` */
  async confirm({ nodeId, projectId, keyThumbprint, holder }: WorkloadClaims): Promise<void> {
    const { nodes, sessions, memberships } = this.#options;
    const node = await nodes.find(nodeId);
    if (node?.projectId !== projectId || node.signingKeyThumbprint !== keyThumbprint) {
      throw invalid("The node of this token was deleted or enrolled again. Call workload-connect again.");
    }
    if (node.projectDeleting === true) throw invalid("The project of this token is being deleted.");
    if (holder === null) return;
    const session = await sessions.find(holder.sessionId);
    if (session?.userId !== holder.userId)
      throw invalid("The session that issued this token has ended. Sign in again.");
    const membership = await memberships.find(projectId, holder.userId);
    if (membership === null || !mayDo(membership.role, "node.connect")) {
      throw invalid("The user who requested this token no longer has access to the node.");
    }
  }
}

function invalid(message: string): DomainError {
  return new DomainError("invalid_credential", message);
}
