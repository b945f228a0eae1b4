import { type NodeStatus, nodeStatusSchema } from "@fairlead/protocol/resources";
import type { Kysely } from "kysely";
import type { HistoryQuery } from "../../../installation/db/history-query.ts";
import type { Database } from "../../../installation/db/tables/schema.ts";

/** What happened to a node and why, for people. `at` is Unix milliseconds; `status` is set where a status was entered. */
export interface NodeEventRecord {
  readonly id: string;
  readonly nodeId: string;
  readonly at: number;
  readonly kind: string;
  readonly status: NodeStatus | null;
  readonly message: string;
  /** Set for a daemon's event: told twice, it is kept once. */
  readonly sourceId?: string;
}

export class NodeEventStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  async append(events: readonly NodeEventRecord[]): Promise<void> {
    if (events.length === 0) return;
    const rows = events.map(({ nodeId, sourceId = null, ...event }) => ({
      node_id: nodeId,
      source_id: sourceId,
      ...event,
    }));
    await this.#db
      .insertInto("node_event")
      .values(rows)
      .onConflict((conflict) => conflict.column("source_id").doNothing())
      .execute();
  }

  /** Like `append`, but the last of the same source holds. */
  async replace({ nodeId, sourceId, ...event }: NodeEventRecord & { readonly sourceId: string }): Promise<void> {
    const { at, message } = event;
    await this.#db
      .insertInto("node_event")
      .values({ node_id: nodeId, source_id: sourceId, ...event })
      .onConflict((conflict) => conflict.column("source_id").doUpdateSet({ at, message }))
      .execute();
  }

  /** @returns how many there are of the node, `limit` at most. */
  async count(nodeId: string, limit: number): Promise<number> {
    const { rows } = await this.#db
      .selectFrom((eb) =>
        eb.selectFrom("node_event").select("id").where("node_id", "=", nodeId).limit(limit).as("kept"),
      )
      .select((eb) => eb.fn.countAll().as("rows"))
      .executeTakeFirstOrThrow();
    return Number(rows);
  }

  /** Newest first. */
  async list(nodeId: string, { limit, after, kinds, since }: HistoryQuery): Promise<NodeEventRecord[]> {
    let query = this.#db
      .selectFrom("node_event")
      .selectAll()
      .where("node_id", "=", nodeId)
      .orderBy("id", "desc")
      .limit(limit);
    if (after !== null) query = query.where("id", "<", after);
    if (kinds !== undefined) query = query.where("kind", "in", kinds);
    if (since !== undefined) query = query.where("at", ">=", since);
    const rows = await query.execute();
    return rows.map(({ node_id, source_id: _source, status, ...row }) => ({
      ...row,
      nodeId: node_id,
      status: status === null ? null : nodeStatusSchema.parse(status),
    }));
  }

  /** A bounded number of the oldest, so that no statement holds the store for long. @returns how many. */
  async deleteBefore(at: number, limit: number): Promise<number> {
    const { numDeletedRows } = await this.#db
      .deleteFrom("node_event")
      .where("id", "in", (eb) => eb.selectFrom("node_event").select("id").where("at", "<", at).limit(limit))
      .executeTakeFirst();
    return Number(numDeletedRows);
  }
}
