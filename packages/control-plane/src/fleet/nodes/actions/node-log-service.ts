import type { Kysely } from "kysely";
import type { AuditService } from "../../../access/audit/audit-service.ts";
import type { ProjectAccess } from "../../../access/auth/access.ts";
import type { UserPrincipal } from "../../../access/auth/principal.ts";
import type { Database } from "../../../installation/db/tables/schema.ts";
import { nodeResource } from "../node.ts";
import type { NodeService } from "../node-service.ts";
import type { NodeLogStream } from "./node-log-stream.ts";
import type { LogQuery, WorkloadLogs } from "./workload-logs.ts";

export interface NodeLogDeps {
  readonly db: Kysely<Database>;
  readonly nodes: Pick<NodeService, "get">;
  readonly access: ProjectAccess;
  readonly audit: AuditService;
  readonly workloadLogs: WorkloadLogs;
}

export interface NodeLogQuery extends LogQuery {
  readonly workload: string;
}

/** `GET /v1/nodes/{id}/logs`. */
export class NodeLogService {
  readonly #deps: NodeLogDeps;

  constructor(deps: NodeLogDeps) {
    this.#deps = deps;
  }

  /**
   * @returns JSON lines of `{at, stream, text}`, once the daemon has started to respond. The reader must destroy the stream.
   * @throws DomainError not_found, permission_denied, no_running_engine, unavailable, overloaded
   */
  async open(caller: UserPrincipal, id: string, query: NodeLogQuery): Promise<NodeLogStream> {
    const { db, nodes, access, audit, workloadLogs } = this.#deps;
    const node = await nodes.get(caller, id);
    const { projectId, status } = node;
    const workload = {
      nodeId: id,
      name: query.workload,
      confirm: async () => {
        await nodes.get(caller, id);
        await access.require(caller, projectId, "node.logs");
      },
      record: async () => {
        const entry = { actor: caller, action: "node.logs", projectId, resource: nodeResource(node) } as const;
        await audit.record(db, entry);
      },
      noContainer: `No container of this node's engine has logs to show. The node is ${status}.`,
      unreachable: `The node's daemon cannot be reached. The node is ${status}.`,
    };
    return workloadLogs.open(caller, workload, query);
  }
}
