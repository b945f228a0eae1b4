import { isDeepStrictEqual } from "node:util";
import type { Kysely } from "kysely";
import type { Database } from "../db/schema.ts";
import type { AgentHosts, HostFacts } from "../nodes/agent-hosts.ts";
import type { AgentRecord, Placement } from "./agent.ts";
import { type AgentLifecycleEvent, nextAgentState } from "./agent-lifecycle.ts";
import { observe } from "./agent-observation.ts";
import type { AgentStores } from "./agent-stores.ts";
import { placementStep } from "./placement.ts";

/** Facts of nodes by id, read before the transaction. Null: there is no such node. */
export type Hosts = Map<string, HostFacts | null>;

/** One line for an agent's history. `event` is left out where the state has nothing to do with it. */
export interface Happening {
  readonly kind: string;
  readonly event?: AgentLifecycleEvent;
  /** For people. */
  readonly message: string;
}

export interface CourseDeps {
  /** Of the transaction that holds the agent's row. */
  readonly stores: AgentStores;
  readonly transaction: Kysely<Database>;
  readonly nodes: Pick<AgentHosts, "replanWithin">;
  readonly hosts: Hosts;
  readonly now: number;
  readonly newEventId: () => string;
}

/** More than ever follow from each other, so that a fault in the tables cannot hold the store for ever. */
const MAX_STEPS = 8;

/** Takes one agent as far as it can go now: onto the desired states of nodes and off them, and through its life. */
export class AgentCourse {
  readonly #deps: CourseDeps;
  readonly #replanned = new Set<string>();
  #agent: AgentRecord;

  constructor(deps: CourseDeps, agent: AgentRecord) {
    this.#deps = deps;
    this.#agent = agent;
  }

  /** Nodes whose desired state has changed. */
  get replanned(): ReadonlySet<string> {
    return this.#replanned;
  }

  /** What somebody asked for: told in its history, whether or not its state follows. */
  async happen({ kind, event, message }: Happening): Promise<void> {
    const state = event === undefined ? null : nextAgentState(this.#agent.lifecycleState, event);
    if (state !== null) this.#agent = { ...this.#agent, lifecycleState: state, lifecycleSince: this.#deps.now };
    const { id: agentId } = this.#agent;
    await this.#deps.stores.events.append([
      { id: this.#deps.newEventId(), agentId, at: this.#deps.now, kind, lifecycleState: state, message },
    ]);
  }

  /** Before a move by force, which changes two plans at once: in one order, so that agents that change places do not wait for each other. */
  async holdNodes(): Promise<void> {
    const { nodeId, placement } = this.#agent;
    const ids = new Set(placement === null ? [nodeId] : [nodeId, placement.nodeId]);
    for (const id of [...ids].toSorted()) await this.#replan(id);
  }

  /** Its spec may have changed: its node's desired state follows. @param anew what was reported before is not of this run. */
  async renew(anew: boolean): Promise<void> {
    const { placement } = this.#agent;
    if (placement === null || placement.releasedAt !== null) return;
    const generation = await this.#replan(placement.nodeId);
    if (anew && generation !== null) this.#agent = { ...this.#agent, placement: { ...placement, since: generation } };
  }

  /** @returns what it has become; null: its row is gone. */
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
      const { event, observed } = observe(this.#agent, hostOf(this.#agent, this.#deps.hosts));
      this.#agent = { ...this.#agent, observed };
      if (event === null || nextAgentState(this.#agent.lifecycleState, event) === null) return;
      await this.happen({ kind: event, event, message: observed.message });
    }
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

  /** @returns the generation that holds now; null where the node went meanwhile. */
  async #replan(nodeId: string): Promise<number | null> {
    // A node's plan is made of rows.
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

  #around(): { readonly placedOn: HostFacts | null; readonly target: HostFacts | null } {
    return around(this.#agent, this.#deps.hosts);
  }
}

/** Whether all is as it was left: nothing to place, and nothing new to see. Pure. */
export function isSettled(agent: AgentRecord, hosts: Hosts): boolean {
  if (placementStep(agent, { ...around(agent, hosts), force: false }) !== null) return false;
  const { event, observed } = observe(agent, hostOf(agent, hosts));
  if (event !== null && nextAgentState(agent.lifecycleState, event) !== null) return false;
  return isDeepStrictEqual(observed, agent.observed);
}

function around(
  { nodeId, placement }: AgentRecord,
  hosts: Hosts,
): { readonly placedOn: HostFacts | null; readonly target: HostFacts | null } {
  const placedOn = placement === null ? null : (hosts.get(placement.nodeId) ?? null);
  return { placedOn, target: hosts.get(nodeId) ?? null };
}

/** The node on which it is placed, else its own. */
function hostOf({ nodeId, placement }: AgentRecord, hosts: Hosts): HostFacts | null {
  return hosts.get(placement?.nodeId ?? nodeId) ?? null;
}
