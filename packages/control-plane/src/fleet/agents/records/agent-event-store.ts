import { type AgentLifecycleState, agentLifecycleStateSchema } from "@fairlead/protocol/agents";
import type { Kysely } from "kysely";
import type { HistoryQuery } from "../../../installation/db/history-query.ts";
import type { Database } from "../../../installation/db/tables/schema.ts";

/** What happened to an agent and why, for people. `at` is Unix milliseconds; the state is set where one was entered. */
export interface AgentEventRecord {
  readonly id: string;
  readonly agentId: string;
  readonly at: number;
  readonly kind: string;
  readonly lifecycleState: AgentLifecycleState | null;
  readonly message: string;
  /** Set for a daemon's event: told twice, it is kept once. */
  readonly sourceId?: string;
}

export class AgentEventStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  async append(events: readonly AgentEventRecord[]): Promise<void> {
    if (events.length === 0) return;
    const rows = events.map(({ agentId, sourceId = null, lifecycleState, ...event }) => ({
      agent_id: agentId,
      source_id: sourceId,
      lifecycle_state: lifecycleState,
      ...event,
    }));
    await this.#db
      .insertInto("agent_event")
      .values(rows)
      .onConflict((conflict) => conflict.column("source_id").doNothing())
      .execute();
  }

  /** @returns how many there are of agents that are placed on the node, `limit` at most. */
  async countOn(nodeId: string, limit: number): Promise<number> {
    const { rows } = await this.#db
      .selectFrom((eb) =>
        eb
          .selectFrom("agent_event")
          .innerJoin("agent", "agent.id", "agent_event.agent_id")
          .select("agent_event.id")
          .where("agent.placed_node_id", "=", nodeId)
          .limit(limit)
          .as("kept"),
      )
      .select((eb) => eb.fn.countAll().as("rows"))
      .executeTakeFirstOrThrow();
    return Number(rows);
  }

  /** Newest first. */
  async list(agentId: string, { limit, after, kinds, since }: HistoryQuery): Promise<AgentEventRecord[]> {
    let query = this.#db
      .selectFrom("agent_event")
      .selectAll()
      .where("agent_id", "=", agentId)
      .orderBy("id", "desc")
      .limit(limit);
    if (after !== null) query = query.where("id", "<", after);
    if (kinds !== undefined) query = query.where("kind", "in", kinds);
    if (since !== undefined) query = query.where("at", ">=", since);
    const rows = await query.execute();
    return rows.map(({ agent_id, source_id: _source, lifecycle_state: state, ...row }) => ({
      ...row,
      agentId: agent_id,
      lifecycleState: state === null ? null : agentLifecycleStateSchema.parse(state),
    }));
  }

  /** A bounded number of the oldest, so that no statement holds the store for long. @returns how many. */
  async deleteBefore(at: number, limit: number): Promise<number> {
    const { numDeletedRows } = await this.#db
      .deleteFrom("agent_event")
      .where("id", "in", (eb) => eb.selectFrom("agent_event").select("id").where("at", "<", at).limit(limit))
      .executeTakeFirst();
    return Number(numDeletedRows);
  }
}
