import { type AgentConfig, nodeOfRuntimeProvider } from "@fairlead/protocol/agents";
import type { Clock } from "@fairlead/protocol/clock";
import { DomainError } from "@fairlead/protocol/errors";
import type { AuditService } from "../audit/audit-service.ts";
import type { UserPrincipal } from "../auth/principal.ts";
import type { HostFacts } from "../nodes/agent-hosts.ts";
import { type AgentRecord, agentDeleting, agentResource } from "./agent.ts";
import type { Ordered } from "./agent-course-service.ts";
import { type AgentInputs, checkHost } from "./agent-inputs.ts";
import type { AgentLifeService } from "./agent-life-service.ts";
import { type PatchedAgent, patchAgent } from "./agent-patch.ts";
import { isQuiet } from "./placement.ts";

export interface UpdateAgent {
  readonly name?: string | undefined;
  readonly guest?: string | undefined;
  readonly runtimeProvider?: string | undefined;
  readonly connectorSlugs?: readonly string[] | undefined;
  readonly config?: AgentConfig | undefined;
  /** Move it away from a node that does not answer. */
  readonly force: boolean;
}

export interface AgentChangeDeps {
  readonly life: Pick<AgentLifeService, "ask" | "carryOut">;
  readonly inputs: AgentInputs;
  readonly audit: AuditService;
  readonly clock: Clock;
}

/** What people change about an agent that is there: its fields, its config, its node. */
export class AgentChangeService {
  readonly #deps: AgentChangeDeps;

  constructor(deps: AgentChangeDeps) {
    this.#deps = deps;
  }

  /**
   * What it changes of an agent that runs is an update, with a rollback where the new one does not become ready. On another node it
   * starts once the former one has reported it gone.
   * @throws DomainError not_found, permission_denied, invalid_request, node_unreachable, node_not_enrolled, daemon_too_old, agent_deleting
   */
  async update(caller: UserPrincipal, id: string, update: UpdateAgent): Promise<AgentRecord> {
    const { life, inputs, audit, clock } = this.#deps;
    const { agent, who } = await life.ask(caller, id, "agent.update");
    const { force, runtimeProvider, ...patch } = update;
    if (patch.connectorSlugs !== undefined) inputs.checkConnectors(patch.connectorSlugs);
    const target = await this.#target(agent, runtimeProvider);
    const nodeId = target?.nodeId;
    return life.carryOut(id, {
      force,
      judge: (now, hosts) => {
        if (now.lifecycleState === "deleting") throw agentDeleting();
        const patched = patchAgent(now, { ...patch, nodeId });
        const { placement } = now;
        const leaves = now.wanted && placement !== null && placement.nodeId !== patched.fields.nodeId;
        const former = placement === null ? null : (hosts.get(placement.nodeId) ?? null);
        if (leaves && !force && former !== null && isQuiet(former)) throw nodeUnreachable(former);
        if (patched.changed.length === 0 && !(leaves && force)) return null;
        const fields = { ...patched.fields, updatedAt: clock.now() };
        return { fields, happening: happening(now, { patched, who, target }) };
      },
      record: async (transaction, now) => {
        const { projectId } = now;
        const fields = patchAgent(now, { ...patch, nodeId }).changed.join(",");
        const detail = { fields, force, ...(nodeId === undefined ? {} : { nodeId }) };
        const entry = {
          actor: caller,
          action: "agent.update",
          projectId,
          resource: agentResource(now),
          detail,
        } as const;
        await audit.record(transaction, entry);
      },
    });
  }

  async #target(agent: AgentRecord, runtimeProvider: string | undefined): Promise<HostFacts | null> {
    // The node that it has already may be gone: then naming it again changes nothing.
    if (runtimeProvider === undefined || nodeOfRuntimeProvider(runtimeProvider) === agent.nodeId) return null;
    const host = await this.#deps.inputs.hostOf(agent.projectId, runtimeProvider);
    if (agent.wanted) checkHost(host);
    return host;
  }
}

interface Change {
  readonly patched: PatchedAgent;
  readonly who: string;
  readonly target: HostFacts | null;
}

function happening(agent: AgentRecord, { patched, who, target }: Change): Ordered["happening"] {
  const { changed } = patched;
  if (target === null) return { kind: "update_requested", message: `${who} changed ${changed.join(", ")}.` };
  const others = changed.filter((field) => field !== "runtimeProvider");
  const message = `${who} moved it to node ${target.name}${others.length === 0 ? "" : ` and changed ${others.join(", ")}`}.`;
  return { kind: "move_requested", message, ...(agent.wanted ? { event: "move_requested" } : {}) };
}

function nodeUnreachable({ name }: HostFacts): DomainError {
  return new DomainError(
    "node_unreachable",
    `Node ${name} does not answer, and the agent may still run there. Wait for it, or move the agent with \`force\`: where that node ` +
      "still works, both copies run until it is back, the former without access to models.",
  );
}
