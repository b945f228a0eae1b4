import { isDeepStrictEqual } from "node:util";
import { type AgentConfig, nodeOfRuntimeProvider } from "@fairlead/protocol/agents";
import { DomainError } from "@fairlead/protocol/errors";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { AuditService } from "../../access/audit/audit-service.ts";
import type { UserPrincipal } from "../../access/auth/principal.ts";
import type { AgentHostFacts } from "../nodes/agents/agent-hosts.ts";
import { type AgentRecord, agentDeleting, agentResource } from "./definition/agent.ts";
import { type AgentInputs, checkHost } from "./definition/agent-inputs.ts";
import type { AgentActionsService } from "./life/agent-actions-service.ts";
import type { Ordered } from "./life/agent-transition-service.ts";
import { isQuiet } from "./life/placement.ts";

/** `PATCH /v1/agents/{id}`: which fields change, and to what. What is absent stays as it is; lists and the config are replaced whole. Pure. */

type Written = Pick<AgentRecord, "name" | "guest" | "nodeId" | "connectorSlugs" | "config">;

type AgentPatch = { readonly [F in keyof Written]?: Written[F] | undefined };

/** By their names on the wire. */
const FIELDS = {
  name: "name",
  guest: "guest",
  nodeId: "runtimeProvider",
  connectorSlugs: "connectorSlugs",
  config: "config",
} as const satisfies Record<keyof Written, string>;

interface PatchedAgent {
  readonly fields: Written;
  /** Those that differ from before, by their names on the wire. */
  readonly changed: readonly string[];
}

function patchAgent(agent: AgentRecord, patch: AgentPatch): PatchedAgent {
  const { connectorSlugs = agent.connectorSlugs } = patch;
  const fields: Written = {
    name: patch.name ?? agent.name,
    guest: patch.guest ?? agent.guest,
    nodeId: patch.nodeId ?? agent.nodeId,
    connectorSlugs: [...new Set(connectorSlugs)],
    config: patch.config ?? agent.config,
  };
  const names = Object.keys(FIELDS) as (keyof Written)[];
  const changed = names.filter((name) => !isDeepStrictEqual(fields[name], agent[name])).map((name) => FIELDS[name]);
  return { fields, changed };
}

export interface UpdateAgent {
  readonly name?: string | undefined;
  readonly guest?: string | undefined;
  readonly runtimeProvider?: string | undefined;
  readonly connectorSlugs?: readonly string[] | undefined;
  readonly config?: AgentConfig | undefined;
  /** Move the agent even if its node does not respond. */
  readonly force: boolean;
}

export interface AgentUpdateDeps {
  readonly life: Pick<AgentActionsService, "ask" | "carryOut">;
  readonly inputs: AgentInputs;
  readonly audit: AuditService;
  readonly clock: Clock;
}

/** Changes of an existing agent's fields, config or node. */
export class AgentUpdateService {
  readonly #deps: AgentUpdateDeps;

  constructor(deps: AgentUpdateDeps) {
    this.#deps = deps;
  }

  /**
   * Changing a running agent is an update, rolled back if the new version does not become ready. On another node it starts once the
   * previous node reports it gone.
   * @throws DomainError not_found, permission_denied, invalid_request, node_unreachable, node_not_enrolled, agent_deleting
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

  async #target(agent: AgentRecord, runtimeProvider: string | undefined): Promise<AgentHostFacts | null> {
    // The current node may be deleted; naming it again changes nothing.
    if (runtimeProvider === undefined || nodeOfRuntimeProvider(runtimeProvider) === agent.nodeId) return null;
    const host = await this.#deps.inputs.hostOf(agent.projectId, runtimeProvider);
    if (agent.wanted) checkHost(host);
    return host;
  }
}

interface Change {
  readonly patched: PatchedAgent;
  readonly who: string;
  readonly target: AgentHostFacts | null;
}

function happening(agent: AgentRecord, { patched, who, target }: Change): Ordered["happening"] {
  const { changed } = patched;
  if (target === null) return { kind: "update_requested", message: `${who} changed ${changed.join(", ")}.` };
  const others = changed.filter((field) => field !== "runtimeProvider");
  const message = `${who} moved it to node ${target.name}${others.length === 0 ? "" : ` and changed ${others.join(", ")}`}.`;
  return { kind: "move_requested", message, ...(agent.wanted ? { event: "move_requested" } : {}) };
}

function nodeUnreachable({ name }: AgentHostFacts): DomainError {
  return new DomainError(
    "node_unreachable",
    `Node ${name} does not respond, and the agent may still be running there. Wait for the node, or move the agent with \`force\`: if that ` +
      "node still works, both copies run until it reconnects; the old copy loses access to models immediately.",
  );
}
