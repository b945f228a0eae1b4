import { DomainError } from "@fairlead/protocol/errors";
import { GATEWAY_PATH, type WorkloadConnect } from "@fairlead/protocol/workload-connect";
import type { Kysely } from "kysely";
import type { AuditService } from "../audit/audit-service.ts";
import type { ProjectAccess } from "../auth/access.ts";
import type { ConnectTokens } from "../auth/connect-token.ts";
import type { Principal, UserPrincipal } from "../auth/principal.ts";
import type { Database } from "../db/schema.ts";
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

/** Which engines run now; the nodes' room. */
export interface Engines {
  list(
    projectId: string,
  ): Promise<readonly { readonly nodeId: string; readonly workload: string; readonly ready: boolean }[]>;
}

/** `GET /v1/nodes/{id}/workload-connect` (interface §4.4): where a node's engine is reached, and what opens it. */
export class WorkloadConnectService {
  readonly #deps: WorkloadConnectDeps;

  constructor(deps: WorkloadConnectDeps) {
    this.#deps = deps;
  }

  /**
   * For a person who may, recorded; and for the node itself, which asks before its engine runs and again every ten minutes.
   * @throws DomainError not_found, permission_denied, node_not_enrolled, no_running_engine
   */
  async connect(caller: Principal, nodeId: string): Promise<WorkloadConnect> {
    const node = await this.#deps.nodes.get(caller, nodeId);
    if (caller.kind === "node") return this.#answer(node, null);
    await this.#deps.access.require(caller, node.projectId, "node.connect");
    const { sessionId, userId } = caller;
    if (sessionId === undefined)
      throw new DomainError("invalid_credential", "Sign in first: the token ends with a session.");
    const answer = await this.#answer(node, { userId, sessionId });
    await this.#record(caller, node);
    return answer;
  }

  async #answer(node: NodeRecord, holder: { userId: string; sessionId: string } | null): Promise<WorkloadConnect> {
    const { id: nodeId, projectId } = node;
    const engine = (await this.#deps.engines.list(projectId)).find((target) => target.nodeId === nodeId);
    if (engine === undefined || node.engineConfig === null)
      throw noEngine("This node has no engine: set its `engineConfig`.");
    const authToken = await this.#deps.connectTokens.issue({ nodeId, workload: engine.workload, projectId, holder });
    if (holder !== null && !engine.ready) {
      throw noEngine(`This node's engine does not run just now; the node is ${node.status}.`);
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
