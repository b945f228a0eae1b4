import type { Clock } from "@fairlead/protocol/clock";
import type { IdSource } from "@fairlead/protocol/ids";
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import type { Database } from "../db/schema.ts";
import type { AgentHosts, HostFacts } from "../nodes/agent-hosts.ts";
import type { AgentRecord } from "./agent.ts";
import type { AgentChanges } from "./agent-changes.ts";
import { AgentCourse, type Happening, type Hosts, isSettled } from "./agent-course.ts";
import type { AgentFields } from "./agent-store.ts";
import type { AgentStores } from "./agent-stores.ts";

export interface AgentCourseDeps {
  readonly stores: AgentStores;
  readonly hosts: AgentHosts;
  readonly changes: AgentChanges;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly log: Logger;
}

/** What becomes of an agent on somebody's word. */
export interface Ordered {
  readonly fields?: AgentFields;
  readonly wanted?: boolean;
  /** A new run, although nothing else of it changes. */
  readonly anew?: boolean;
  readonly happening: Happening;
}

export interface Order {
  /**
   * Pure, and asked again with the agent's row held. Null: it is so already.
   * @param hosts that its way leads over so far
   */
  judge(agent: AgentRecord, hosts: ReadonlyMap<string, HostFacts | null>): Ordered | null;
  /** Move it although it may still run on a node that does not answer. */
  readonly force?: boolean;
  /** In the same transaction, where something was ordered. */
  record(transaction: Kysely<Database>, before: AgentRecord): Promise<void>;
}

interface Outcome {
  /** Null: there is no such agent any more. */
  readonly agent: AgentRecord | null;
  readonly announce: () => void;
}

/** The only writer of where agents are placed and how they stand. Entering a state is an event with its reason (design §4). */
export class AgentCourseService {
  readonly #deps: AgentCourseDeps;

  constructor(deps: AgentCourseDeps) {
    this.#deps = deps;
  }

  /** @returns the agent as it is then; null: there is none, or no more. @throws what the order's judgement throws */
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

  /** Takes up what is known of its nodes now. Costs the store no write where that is nothing new. */
  async look(agentId: string): Promise<void> {
    const seen = await this.#deps.stores.agents.find(agentId);
    if (seen === null) return;
    const hosts: Hosts = new Map();
    await this.#read(hosts, nodesOf(seen, null));
    if (isSettled(seen, hosts)) return;
    const outcome = await this.#deps.stores.transaction(async (stores, transaction) => {
      const agent = await stores.agents.findForUpdate(agentId);
      const isKnown = agent !== null && nodesOf(agent, null).every((id) => hosts.has(id));
      // Whoever changed it has looked at it too.
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
    const { clock, ids } = this.#deps;
    const parts = { stores, transaction, hosts, nodes: this.#deps.hosts, now: clock.now() };
    const course = new AgentCourse({ ...parts, newEventId: () => ids.next("event") }, agent);
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

/** Those that its way may lead over. */
function nodesOf({ nodeId, placement }: AgentRecord, ordered: Ordered | null): string[] {
  const ids = [nodeId, ...(placement === null ? [] : [placement.nodeId]), ordered?.fields?.nodeId ?? nodeId];
  return [...new Set(ids)];
}
