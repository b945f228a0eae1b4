import { DomainError } from "@fairlead/protocol/errors";
import { GATEWAY_PATH, type WorkloadConnect } from "@fairlead/protocol/workload-connect";
import type { Kysely } from "kysely";
import type { AuditService } from "../../access/audit/audit-service.ts";
import type { ProjectAccess } from "../../access/auth/access.ts";
import type { Principal, UserPrincipal } from "../../access/auth/principal.ts";
import type { ConnectTokens } from "../../access/auth/tokens/connect-token.ts";
import type { Database } from "../../installation/db/tables/schema.ts";
import { type NodeRecord, nodeResource } from "../nodes/node.ts";
import type { NodeService } from "../nodes/node-service.ts";

export interface WorkloadConnectDeps {
  readonly db: Kysely<Database>;
  readonly nodes: Pick<NodeService, "get">;
  readonly engines: Engines;
  readonly access: ProjectAccess;
  readonly connectTokens: Pick<ConnectTokens, "issue">;
  readonly audit: AuditService;
  readonly publicUrl: string;
}

/** Running engines, from the nodes room. */
export interface Engines {
  list(
    projectId: string,
  ): Promise<readonly { readonly nodeId: string; readonly workload: string; readonly absence: string | null }[]>;
}

/** `GET /v1/nodes/{id}/workload-connect` (docs/interface.md §4.4): the URL and token of a node's engine. */
export class WorkloadConnectService {
  readonly #deps: WorkloadConnectDeps;

  constructor(deps: WorkloadConnectDeps) {
    this.#deps = deps;
  }

  /**
   * For authorized users, with an audit event, and for the node itself, which calls it before its engine runs and every ten minutes.
   * @throws DomainError not_found, permission_denied, node_not_enrolled, no_running_engine
   */
  async connect(caller: Principal, nodeId: string): Promise<WorkloadConnect> {
    const node = await this.#deps.nodes.get(caller, nodeId);
    if (caller.kind === "node") return this.#answer(node, null);
    await this.#deps.access.require(caller, node.projectId, "node.connect");
    const { sessionId, userId } = caller;
    if (sessionId === undefined)
      throw new DomainError("invalid_credential", "Sign in first, because the token belongs to a session.");
    const answer = await this.#answer(node, { userId, sessionId });
    await this.#record(caller, node);
    return answer;
  }

  async #answer(node: NodeRecord, holder: { userId: string; sessionId: string } | null): Promise<WorkloadConnect> {
    const { id: nodeId, projectId } = node;
    const engine = (await this.#deps.engines.list(projectId)).find((target) => target.nodeId === nodeId);
    if (engine === undefined || node.engineConfig === null)
      throw noEngine("This node has no engine. Set its `engineConfig`.");
    const authToken = await this.#deps.connectTokens.issue({ nodeId, workload: engine.workload, projectId, holder });
    if (holder !== null && engine.absence !== null) {
      throw noEngine(engine.absence);
    }
    return { gatewayUrl: this.#deps.publicUrl + GATEWAY_PATH(nodeId), authToken };
  }

  async #record(actor: UserPrincipal, node: NodeRecord): Promise<void> {
    const { db, audit } = this.#deps;
    await audit.record(db, {
      actor,
      action: "node.connect",
      projectId: node.projectId,
      resource: nodeResource(node),
    });
  }
}

const RETRY_SECONDS = 5;

function noEngine(message: string): DomainError {
  return new DomainError("no_running_engine", message, { retryAfterSeconds: RETRY_SECONDS });
}
