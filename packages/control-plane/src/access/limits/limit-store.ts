import type { Kysely, Selectable } from "kysely";
import type { Database, ProjectLimitsTable } from "../../installation/db/tables/schema.ts";
import { type CallLimits, NO_CALL_LIMITS } from "./call-limits.ts";

/** Limits set per project. */
export class LimitStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  async find(projectId: string): Promise<CallLimits> {
    const query = this.#db.selectFrom("project_limits").selectAll().where("project_id", "=", projectId);
    const row = await query.executeTakeFirst();
    return row === undefined ? NO_CALL_LIMITS : fromRow(row);
  }

  /** Locks them until the transaction ends. */
  async findForUpdate(projectId: string): Promise<CallLimits> {
    const none = { requests_per_minute: null, tokens_per_minute: null, parallel_calls: null };
    const row = await this.#db
      .insertInto("project_limits")
      .values({ project_id: projectId, ...none })
      .onConflict((conflict) => conflict.column("project_id").doUpdateSet({ project_id: projectId }))
      .returningAll()
      .executeTakeFirstOrThrow();
    return fromRow(row);
  }

  async set(projectId: string, limits: CallLimits): Promise<void> {
    const values = {
      requests_per_minute: limits.requestsPerMinute,
      tokens_per_minute: limits.tokensPerMinute,
      parallel_calls: limits.parallelCalls,
    };
    await this.#db.updateTable("project_limits").set(values).where("project_id", "=", projectId).execute();
  }

  async transaction<T>(work: (limits: LimitStore, transaction: Kysely<Database>) => Promise<T>): Promise<T> {
    return this.#db.transaction().execute((transaction) => work(new LimitStore(transaction), transaction));
  }
}

function fromRow(row: Selectable<ProjectLimitsTable>): CallLimits {
  return {
    requestsPerMinute: row.requests_per_minute,
    tokensPerMinute: row.tokens_per_minute,
    parallelCalls: row.parallel_calls,
  };
}
