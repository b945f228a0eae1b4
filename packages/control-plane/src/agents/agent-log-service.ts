import type { Kysely } from "kysely";
import type { AuditService } from "../audit/audit-service.ts";
import type { ProjectAccess } from "../auth/access.ts";
import type { UserPrincipal } from "../auth/principal.ts";
import type { Database } from "../db/schema.ts";
import type { NodeLogStream } from "../nodes/node-log-stream.ts";
import type { LogQuery, WorkloadLogs } from "../nodes/workload-logs.ts";
import { agentResource, workloadName } from "./agent.ts";
import type { AgentService } from "./agent-service.ts";

export interface AgentLogDeps {
  readonly db: Kysely<Database>;
  readonly agents: Pick<AgentService, "get">;
  readonly access: ProjectAccess;
  readonly audit: AuditService;
  readonly workloadLogs: Pick<WorkloadLogs, "open">;
}

/** `GET /v1/agents/{id}/logs`: what an agent prints. */
export class AgentLogService {
  readonly #deps: AgentLogDeps;

  constructor(deps: AgentLogDeps) {
    this.#deps = deps;
  }

  /**
   * @returns JSON lines of `{at, stream, text}`, once the daemon has begun to answer; whoever reads them destroys them.
   * @throws DomainError not_found, permission_denied, no_running_engine, unavailable, overloaded
   */
  async open(caller: UserPrincipal, id: string, query: LogQuery): Promise<NodeLogStream> {
    const { db, agents, access, audit, workloadLogs } = this.#deps;
    const agent = await agents.get(caller, id);
    const { projectId, lifecycleState, placement } = agent;
    const workload = {
      // Where it last was, what its container printed may still be there.
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
      noContainer: `There is no container of this agent whose output could be shown; the agent is ${lifecycleState}.`,
      unreachable: `The daemon of the agent's node cannot be reached just now; the agent is ${lifecycleState}.`,
    };
    return workloadLogs.open(caller, workload, query);
  }
}
