import type { Clock } from "@fairlead/protocol/values/clock";
import type { IdSource } from "@fairlead/protocol/values/ids";
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import type { Database } from "../../../installation/db/tables/schema.ts";
import type { AgentHostFacts, AgentHosts } from "../../nodes/agents/agent-hosts.ts";
import type { EventRooms } from "../../nodes/records/event-rooms.ts";
import type { AgentRecord } from "../definition/agent.ts";
import type { AgentChangeFeed } from "../records/agent-change-feed.ts";
import type { AgentFields } from "../records/agent-store.ts";
import type { AgentStores } from "../records/agent-stores.ts";
import { AgentTransition, type Happening, type Hosts, isSettled } from "./agent-transitions.ts";

export interface AgentTransitionServiceDeps {
  readonly stores: AgentStores;
  readonly hosts: AgentHosts;
  /** For events caused by nodes. */
  readonly rooms: Pick<EventRooms, "open" | "take">;
  readonly changes: AgentChangeFeed;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly log: Logger;
}

/** The changes that a user requested. */
export interface Ordered {
  readonly fields?: AgentFields;
  readonly wanted?: boolean;
  /** Starts a new run even if nothing else changes. */
  readonly anew?: boolean;
  readonly happening: Happening;
}

export interface Order {
  /** Pure; called again with the agent's row locked. Null: nothing to change. @param hosts nodes involved so far */
  judge(agent: AgentRecord, hosts: ReadonlyMap<string, AgentHostFacts | null>): Ordered | null;
  /** Move it although it may still run on a node that does not respond. */
  readonly force?: boolean;
  /** Runs in the same transaction if something was changed. */
  record(transaction: Kysely<Database>, before: AgentRecord): Promise<void>;
}

interface Outcome {
  /** Null: the agent does not exist. */
  readonly agent: AgentRecord | null;
  readonly announce: () => void;
}

/** The only writer of agents' placement and state. Every state change is recorded as an event with its reason. */
export class AgentTransitionService {
  readonly #deps: AgentTransitionServiceDeps;

  constructor(deps: AgentTransitionServiceDeps) {
    this.#deps = deps;
  }

  /** @returns the resulting agent; null if it does not exist. @throws what the order's `judge` throws */
  async order(agentId: string, order: Order): Promise<AgentRecord | null> {
    const hosts: Hosts = new Map();
    for (;;) {
      const seen = await this.#deps.stores.agents.find(agentId);
      if (seen === null) return null;
      await this.#read(hosts, nodesOf(seen, null));
      await this.#read(hosts, nodesOf(seen, order.judge(seen, hosts)));
      const outcome = await this.#deps.stores.transaction(async (stores, transaction) => {
        const agent = await stores.agents.findForUpdate(agentId);
        if (agent === null) return GONE;
        return this.#carryOut({ stores, transaction, hosts, agent }, order);
      });
      if (outcome === null) continue;
      outcome.announce();
      return outcome.agent;
    }
  }

  /** Applies the current state of its nodes. Writes nothing if nothing changed. */
  async look(agentId: string): Promise<void> {
    const seen = await this.#deps.stores.agents.find(agentId);
    if (seen === null) return;
    const hosts: Hosts = new Map();
    await this.#read(hosts, nodesOf(seen, null));
    if (isSettled(seen, hosts)) return;
    await this.#deps.rooms.open(hostIdOf(seen));
    const outcome = await this.#deps.stores.transaction(async (stores, transaction) => {
      const agent = await stores.agents.findForUpdate(agentId);
      const isKnown = agent !== null && nodesOf(agent, null).every((id) => hosts.has(id));
      // The transaction that changed it has already settled it.
      return isKnown ? this.#settle({ stores, transaction, hosts, agent }, null, false) : GONE;
    });
    outcome.announce();
  }

  async #carryOut(held: Held, order: Order): Promise<Outcome | null> {
    const { stores, transaction, agent, hosts } = held;
    if (!nodesOf(agent, null).every((id) => hosts.has(id))) return null;
    const ordered = order.judge(agent, hosts);
    if (!nodesOf(agent, ordered).every((id) => hosts.has(id))) return null;
    if (ordered === null) return { agent, announce: () => undefined };
    await order.record(transaction, agent);
    const { fields, wanted = agent.wanted, anew = false } = ordered;
    if (fields !== undefined) await stores.agents.setFields(agent.projectId, agent.id, fields);
    const run = anew ? agent.run + 1 : agent.run;
    return this.#settle({ ...held, agent: { ...agent, ...fields, wanted, run } }, ordered, order.force ?? false);
  }

  async #settle(held: Held, ordered: Ordered | null, force: boolean): Promise<Outcome> {
    const { stores, transaction, hosts, agent } = held;
    const { clock, ids, rooms } = this.#deps;
    const parts = { stores, transaction, hosts, nodes: this.#deps.hosts, now: clock.now() };
    const admit = (of: AgentRecord): boolean => rooms.take(hostIdOf(of), 1) === 1;
    const course = new AgentTransition({ ...parts, newEventId: () => ids.next("event"), admit }, agent);
    if (force) await course.holdNodes();
    if (ordered !== null) {
      await course.happen(ordered.happening);
      await course.renew(ordered.anew ?? false);
    }
    const after = await course.settle(force);
    return { agent: after, announce: () => this.#announce(agent, after, course.replanned) };
  }

  async #read(hosts: Hosts, ids: readonly string[]): Promise<void> {
    for (const id of ids) if (!hosts.has(id)) hosts.set(id, await this.#deps.hosts.facts(id));
  }

  #announce(before: AgentRecord, after: AgentRecord | null, replanned: ReadonlySet<string>): void {
    const { id: agentId, projectId } = before;
    if (after?.lifecycleState !== before.lifecycleState) {
      const state = after?.lifecycleState ?? "gone";
      this.#deps.log.info({ agentId, state, reason: after?.observed.message }, "agent entered state");
    }
    for (const nodeId of replanned) this.#deps.hosts.announce(nodeId, projectId);
    this.#deps.changes.emit({ agentId, projectId });
  }
}

interface Held {
  readonly stores: AgentStores;
  readonly transaction: Kysely<Database>;
  readonly hosts: Hosts;
  readonly agent: AgentRecord;
}

const GONE: Outcome = { agent: null, announce: () => undefined };

function hostIdOf({ nodeId, placement }: AgentRecord): string {
  return placement?.nodeId ?? nodeId;
}

/** The nodes that the transition may involve. */
function nodesOf({ nodeId, placement }: AgentRecord, ordered: Ordered | null): string[] {
  const ids = [nodeId, ...(placement === null ? [] : [placement.nodeId]), ordered?.fields?.nodeId ?? nodeId];
  return [...new Set(ids)];
}
