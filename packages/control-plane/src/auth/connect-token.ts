import { DomainError } from "@fairlead/protocol/errors";
import { CONNECT_TOKEN_TTL_SECONDS } from "@fairlead/protocol/workload-connect";
import { type Membership, mayDo } from "./access.ts";
import type { NodeIdentities, SignInSessions, TokenVerifier } from "./authenticate.ts";
import type { TokenService, WorkloadClaims } from "./tokens.ts";

/** Workload-connect tokens (design §5): what opens one workload of one node from outside, checked by the relay on every request. */

export interface ConnectTokenOptions {
  readonly tokens: TokenService;
  readonly verified: TokenVerifier;
  readonly nodes: NodeIdentities;
  readonly sessions: SignInSessions;
  readonly memberships: ProjectMemberships;
}

/** Who is in which project now. */
export interface ProjectMemberships {
  find(projectId: string, userId: string): Membership | null | Promise<Membership | null>;
}

export type ConnectRequest = Omit<WorkloadClaims, "audience" | "keyThumbprint">;

export class ConnectTokens {
  readonly #options: ConnectTokenOptions;

  constructor(options: ConnectTokenOptions) {
    this.#options = options;
  }

  /** Good while the node keeps the identity that it has now. @throws DomainError node_not_enrolled */
  async issue(request: ConnectRequest): Promise<string> {
    const node = await this.#options.nodes.find(request.nodeId);
    if (node?.projectId !== request.projectId) {
      throw new DomainError(
        "node_not_enrolled",
        "No daemon has enrolled for this node yet: there is nothing to reach.",
      );
    }
    const keyThumbprint = node.signingKeyThumbprint;
    const claims: WorkloadClaims = { audience: "workload", ...request, keyThumbprint };
    return this.#options.tokens.issueConnect(claims, CONNECT_TOKEN_TTL_SECONDS);
  }

  /** What the token opens. @throws DomainError `invalid_credential`, `expired_credential`; `unavailable` when it cannot be checked. */
  async authenticate(token: string): Promise<WorkloadClaims> {
    const claims = await this.#options.verified.verify(token);
    if (claims.audience !== "workload") {
      throw invalid(
        "The gateway takes the `authToken` of `GET /v1/nodes/{id}/workload-connect` or `GET /v1/agents/{id}/connect`, and no other credential.",
      );
    }
    await this.confirm(claims);
    return claims;
  }

  /** Asked again and again while something that the token opened is open. @throws DomainError `invalid_credential`, `unavailable` */
  async confirm({ nodeId, projectId, keyThumbprint, holder }: WorkloadClaims): Promise<void> {
    const { nodes, sessions, memberships } = this.#options;
    const node = await nodes.find(nodeId);
    if (node?.projectId !== projectId || node.signingKeyThumbprint !== keyThumbprint) {
      throw invalid("The node of this token was deleted or has enrolled anew; ask for workload-connect again.");
    }
    if (node.projectDeleting === true) throw invalid("The project of this token is being deleted.");
    if (holder === null) return;
    const session = await sessions.find(holder.sessionId);
    if (session?.userId !== holder.userId)
      throw invalid("The session that this token came of has ended; sign in again.");
    const membership = await memberships.find(projectId, holder.userId);
    if (membership === null || !mayDo(membership.role, "node.connect")) {
      throw invalid("Whoever asked for this token may not reach the node any more.");
    }
  }
}

function invalid(message: string): DomainError {
  return new DomainError("invalid_credential", message);
}
