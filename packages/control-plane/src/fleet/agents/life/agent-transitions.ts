import { isDeepStrictEqual } from "node:util";
import type { AgentLifecycleState } from "@fairlead/protocol/agents";
import type { Kysely } from "kysely";
import type { Database } from "../../../installation/db/tables/schema.ts";
import type { AgentHostFacts, AgentHosts } from "../../nodes/agents/agent-hosts.ts";
import type { AgentRecord, Placement } from "../definition/agent.ts";
import type { AgentStores } from "../records/agent-stores.ts";
import { type AgentLifecycleEvent, nextAgentState } from "./agent-lifecycle.ts";
import { observeAgent } from "./agent-observation.ts";
import { placementStep } from "./placement.ts";

/** Facts of nodes by ID, read before the transaction. Null: no such node. */
export type Hosts = Map<string, AgentHostFacts | null>;

/** One line of an agent's history. `event` is omitted if the state is not affected. */
export interface Happening {
  readonly kind: string;
  readonly event?: AgentLifecycleEvent;
  /** Shown to users. */
  readonly message: string;
}

export interface AgentTransitionDeps {
  /** Of the transaction that locks the agent's row. */
  readonly stores: AgentStores;
  readonly transaction: Kysely<Database>;
  readonly nodes: Pick<AgentHosts, "replanWithin">;
  readonly hosts: Hosts;
  readonly now: number;
  readonly newEventId: () => string;
  /** Whether its node may add one more event to its history. */
  readonly admit: (agent: AgentRecord) => boolean;
}

/** More than any sequence of steps needs; stops an endless loop caused by faulty tables. */
const MAX_STEPS = 8;

/** Advances one agent as far as possible now: its placement on nodes and its state. */
export class AgentTransition {
  readonly #deps: AgentTransitionDeps;
  readonly #replanned = new Set<string>();
  #agent: AgentRecord;

  constructor(deps: AgentTransitionDeps, agent: AgentRecord) {
    this.#deps = deps;
    this.#agent = agent;
  }

  /** Nodes whose desired state changed. */
  get replanned(): ReadonlySet<string> {
    return this.#replanned;
  }

  /** Records a user's request in the history, whether or not the state changes. */
  async happen(happening: Happening): Promise<void> {
    await this.#tell(happening, this.#enter(happening.event));
  }

  /** Locks nodes in a fixed order before a forced move, which changes two plans, to avoid deadlocks. */
  async holdNodes(): Promise<void> {
    const { nodeId, placement } = this.#agent;
    const ids = new Set(placement === null ? [nodeId] : [nodeId, placement.nodeId]);
    for (const id of [...ids].toSorted()) await this.#replan(id);
  }

  /** Updates the node's desired state after a spec change. @param anew earlier reports are not about this run. */
  async renew(anew: boolean): Promise<void> {
    const { placement } = this.#agent;
    if (placement === null || placement.releasedAt !== null) return;
    const generation = await this.#replan(placement.nodeId);
    if (anew && generation !== null) this.#agent = { ...this.#agent, placement: { ...placement, since: generation } };
  }

  /** @returns the resulting agent; null if its row was deleted. */
  async settle(force: boolean): Promise<AgentRecord | null> {
    for (let steps = 0; steps < MAX_STEPS; steps++) {
      const step = placementStep(this.#agent, { ...this.#around(), force });
      if (step === null) break;
      if (step === "forget") {
        await this.#deps.stores.agents.delete(this.#agent.projectId, this.#agent.id);
        return null;
      }
      if (step === "place") await this.#place();
      else if (step === "release") await this.#release();
      else this.#agent = { ...this.#agent, placement: null };
    }
    await this.#observe();
    await this.#write();
    return this.#agent;
  }

  async #observe(): Promise<void> {
    for (let steps = 0; steps < MAX_STEPS; steps++) {
      const { event, observed } = observeAgent(this.#agent, hostOf(this.#agent, this.#deps.hosts));
      this.#agent = { ...this.#agent, observed };
      if (event === null || nextAgentState(this.#agent.lifecycleState, event) === null) return;
      const state = this.#enter(event);
      if (this.#deps.admit(this.#agent)) await this.#tell({ kind: event, message: observed.message }, state);
    }
  }

  /** @returns the state entered; null if it does not change. */
  #enter(event: AgentLifecycleEvent | undefined): AgentLifecycleState | null {
    const state = event === undefined ? null : nextAgentState(this.#agent.lifecycleState, event);
    if (state !== null) this.#agent = { ...this.#agent, lifecycleState: state, lifecycleSince: this.#deps.now };
    return state;
  }

  async #tell({ kind, message }: Happening, lifecycleState: AgentLifecycleState | null): Promise<void> {
    const { id: agentId } = this.#agent;
    await this.#deps.stores.events.append([
      { id: this.#deps.newEventId(), agentId, at: this.#deps.now, kind, lifecycleState, message },
    ]);
  }

  async #place(): Promise<void> {
    const { nodeId, run } = this.#agent;
    const placed: Placement = { nodeId, since: 0, releasedAt: null };
    const unplaced = this.#agent;
    this.#agent = { ...unplaced, run: run + 1, placement: placed };
    const generation = await this.#replan(nodeId);
    this.#agent = generation === null ? unplaced : { ...this.#agent, placement: { ...placed, since: generation } };
  }

  async #release(): Promise<void> {
    const { placement } = this.#agent;
    if (placement === null) return;
    const releasedAt = await this.#replan(placement.nodeId);
    if (releasedAt !== null) this.#agent = { ...this.#agent, placement: { ...placement, releasedAt } };
  }

  /** @returns the current generation; null if the node was deleted meanwhile. */
  async #replan(nodeId: string): Promise<number | null> {
    // A node's plan is computed from stored rows.
    await this.#write();
    const replanned = await this.#deps.nodes.replanWithin(this.#deps.transaction, nodeId);
    if (replanned === null) {
      this.#deps.hosts.set(nodeId, null);
      return null;
    }
    if (replanned.changed) this.#replanned.add(nodeId);
    return replanned.generation;
  }

  async #write(): Promise<void> {
    const { agents } = this.#deps.stores;
    await agents.setCourse(this.#agent.projectId, this.#agent.id, this.#agent);
  }

  #around(): { readonly placedOn: AgentHostFacts | null; readonly target: AgentHostFacts | null } {
    return around(this.#agent, this.#deps.hosts);
  }
}

/** Whether there is nothing to place and nothing new to observe. Pure. */
export function isSettled(agent: AgentRecord, hosts: Hosts): boolean {
  if (placementStep(agent, { ...around(agent, hosts), force: false }) !== null) return false;
  const { event, observed } = observeAgent(agent, hostOf(agent, hosts));
  if (event !== null && nextAgentState(agent.lifecycleState, event) !== null) return false;
  return isDeepStrictEqual(observed, agent.observed);
}

function around(
  { nodeId, placement }: AgentRecord,
  hosts: Hosts,
): { readonly placedOn: AgentHostFacts | null; readonly target: AgentHostFacts | null } {
  const placedOn = placement === null ? null : (hosts.get(placement.nodeId) ?? null);
  return { placedOn, target: hosts.get(nodeId) ?? null };
}

/** The node where it is placed, else its own. */
function hostOf({ nodeId, placement }: AgentRecord, hosts: Hosts): AgentHostFacts | null {
  return hosts.get(placement?.nodeId ?? nodeId) ?? null;
}
