import type { Kysely } from "kysely";
import type { AuditService } from "../../../access/audit/audit-service.ts";
import type { ProjectAccess } from "../../../access/auth/access.ts";
import type { UserPrincipal } from "../../../access/auth/principal.ts";
import type { Database } from "../../../installation/db/tables/schema.ts";
import type { NodeLogStream } from "../../nodes/actions/node-log-stream.ts";
import type { LogQuery, WorkloadLogs } from "../../nodes/actions/workload-logs.ts";
import type { AgentService } from "../agent-service.ts";
import { agentResource, workloadName } from "../definition/agent.ts";

export interface AgentLogDeps {
  readonly db: Kysely<Database>;
  readonly agents: Pick<AgentService, "get">;
  readonly access: ProjectAccess;
  readonly audit: AuditService;
  readonly workloadLogs: Pick<WorkloadLogs, "open">;
}

/** `GET /v1/agents/{id}/logs`. */
export class AgentLogService {
  readonly #deps: AgentLogDeps;

  constructor(deps: AgentLogDeps) {
    this.#deps = deps;
  }

  /**
   * @returns JSON lines of `{at, stream, text}`, once the daemon has started to respond. The reader must destroy the stream.
   * @throws DomainError not_found, permission_denied, no_running_engine, unavailable, overloaded
   */
  async open(caller: UserPrincipal, id: string, query: LogQuery): Promise<NodeLogStream> {
    const { db, agents, access, audit, workloadLogs } = this.#deps;
    const agent = await agents.get(caller, id);
    const { projectId, lifecycleState, placement } = agent;
    const workload = {
      // Logs of the last container may still exist on the previous node.
      nodeId: placement?.nodeId ?? agent.nodeId,
      name: workloadName(id),
      confirm: async () => {
        await agents.get(caller, id);
        await access.require(caller, projectId, "agent.logs");
      },
      record: async () => {
        const entry = { actor: caller, action: "agent.logs", projectId, resource: agentResource(agent) } as const;
        await audit.record(db, entry);
      },
      noContainer: `No container of this agent has logs to show. The agent is ${lifecycleState}.`,
      unreachable: `The daemon of the agent's node cannot be reached. The agent is ${lifecycleState}.`,
    };
    return workloadLogs.open(caller, workload, query);
  }
}
