import type { NodeStatus } from "@fairlead/protocol/resources";
import type { Kysely } from "kysely";
import type { Database } from "../db/schema.ts";

/** What happened to a node and why, for people. `at` is Unix milliseconds; `status` is set where a status was entered. */
export interface NodeEventRecord {
  readonly id: string;
  readonly nodeId: string;
  readonly at: number;
  readonly kind: string;
  readonly status: NodeStatus | null;
  readonly message: string;
}

export class NodeEventStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /** A repeated id is the same event told again: it is kept once. */
  async append(events: readonly NodeEventRecord[]): Promise<void> {
    if (events.length === 0) return;
    const rows = events.map(({ nodeId, ...event }) => ({ node_id: nodeId, ...event }));
    await this.#db
      .insertInto("node_event")
      .values(rows)
      .onConflict((conflict) => conflict.column("id").doNothing())
      .execute();
  }
}
