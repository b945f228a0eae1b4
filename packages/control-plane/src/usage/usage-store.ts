import { type Compilable, CompiledQuery, type Expression, type Kysely, type Selectable, sql } from "kysely";
import type { UsageHourTable, UsageRecordTable } from "../db/metering-tables.ts";
import type { Database } from "../db/schema.ts";
import {
  DAY_MS,
  type UsageDimension,
  type UsageGroup,
  type UsageRange,
  type UsageRecord,
  type UsageSums,
} from "./usage.ts";
import type { HourSums, UsageBatch } from "./usage-batch.ts";

/** All of them together; undefined: any. Times are Unix milliseconds. */
export interface CallFilter {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
  readonly keyId?: string | undefined;
  readonly agentId?: string | undefined;
  readonly model?: string | undefined;
  readonly outcome?: string | undefined;
}

/** Rows of one statement: both databases bound how many values one may carry. */
const CHUNK = 256;

const SUMS = [
  "calls",
  "estimated_calls",
  "input_tokens",
  "cached_input_tokens",
  "output_tokens",
  "reasoning_tokens",
  "cost",
] as const;
const HOUR_KEY = ["project_id", "hour", "model", "key_id", "user_id", "agent_id", "upstream", "outcome"] as const;

const COLUMNS: Readonly<Record<UsageDimension, Expression<string | number>>> = {
  // As a literal: PostgreSQL would take two parameters for two different expressions.
  day: sql<number>`${sql.ref("hour")} - ${sql.ref("hour")} % ${sql.lit(DAY_MS)}`,
  hour: sql.ref<number>("hour"),
  model: sql.ref<string>("model"),
  key: sql.ref<string>("key_id"),
  user: sql.ref<string>("user_id"),
  agent: sql.ref<string>("agent_id"),
  upstream: sql.ref<string>("upstream"),
  outcome: sql.ref<string>("outcome"),
};

/** Records are only ever added, with what the sums of their hours grow by in the same transaction, and removed by age. */
export class UsageStore {
  readonly #db: Kysely<Database>;
  /** Statements by table and number of rows: to compose them anew would cost more than all else that a record costs the calls. */
  readonly #texts = new Map<string, string>();

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /** What writes a batch, all of it or nothing. */
  statements(batch: UsageBatch): readonly CompiledQuery[] {
    return [
      ...powersOfTwo(batch.records.map(toRow)).map((rows) => this.#insert(rows)),
      ...powersOfTwo(batch.hours().map(toHourRow)).map((rows) => this.#addToHours(rows)),
    ];
  }

  /** The newest first. `after` is a record's id. */
  async list(
    projectId: string,
    { from, to, keyId, agentId, model, outcome }: CallFilter,
    page: { readonly after: string | null; readonly limit: number },
  ): Promise<readonly UsageRecord[]> {
    let query = this.#db.selectFrom("usage_record").selectAll().where("project_id", "=", projectId);
    if (from !== undefined) query = query.where("at", ">=", from);
    if (to !== undefined) query = query.where("at", "<", to);
    if (keyId !== undefined) query = query.where("key_id", "=", keyId);
    if (agentId !== undefined) query = query.where("agent_id", "=", agentId);
    if (model !== undefined) query = query.where("model", "=", model);
    if (outcome !== undefined) query = query.where("outcome", "=", outcome);
    if (page.after !== null) query = query.where("id", "<", page.after);
    const rows = await query.orderBy("id", "desc").limit(page.limit).execute();
    return rows.map(fromRow);
  }

  /** From the hours' sums, told apart by at least one thing. @returns at most `limit` groups, in no order. */
  async sums(
    projectId: string,
    { from, to, by, limit }: UsageRange & { readonly by: readonly UsageDimension[]; readonly limit: number },
  ): Promise<readonly UsageGroup[]> {
    const columns = by.map((dimension) => COLUMNS[dimension]);
    const rows = await this.#db
      .selectFrom("usage_hour")
      .select((eb) => SUMS.map((column) => eb.fn.sum<number | string>(column).as(column)))
      .select(columns.map((column, at) => sql<string | number>`${column}`.as(`group_${at}`)))
      .where("project_id", "=", projectId)
      .where("hour", ">=", from)
      .where("hour", "<", to)
      .groupBy(columns)
      .limit(limit)
      .execute();
    return rows.map((row) => ({ values: by.map((_, at) => valueOf(row, `group_${at}`)), sums: sumsFrom(row) }));
  }

  /** A bounded number of the records before a moment. @returns how many. */
  async deleteRecordsBefore(at: number, limit: number): Promise<number> {
    const { numDeletedRows } = await this.#db
      .deleteFrom("usage_record")
      .where("id", "in", (eb) => eb.selectFrom("usage_record").select("id").where("at", "<", at).limit(limit))
      .executeTakeFirst();
    return Number(numDeletedRows);
  }

  /** As `deleteRecordsBefore`, of the hours' sums. */
  async deleteHoursBefore(at: number, limit: number): Promise<number> {
    const { numDeletedRows } = await this.#db
      .deleteFrom("usage_hour")
      .where(
        sql`(${sql.join(HOUR_KEY.map((column) => sql.ref(column)))})`,
        "in",
        this.#db.selectFrom("usage_hour").select(HOUR_KEY).where("hour", "<", at).limit(limit),
      )
      .executeTakeFirst();
    return Number(numDeletedRows);
  }

  #insert(rows: readonly UsageRecordTable[]): CompiledQuery {
    return this.#repeated(`usage_record ${rows.length}`, rows, () => this.#db.insertInto("usage_record").values(rows));
  }

  #addToHours(rows: readonly UsageHourTable[]): CompiledQuery {
    return this.#repeated(`usage_hour ${rows.length}`, rows, () => {
      const added = SUMS.map((column) => [
        column,
        sql<number>`${sql.ref(`usage_hour.${column}`)} + ${sql.ref(`excluded.${column}`)}`,
      ]);
      return this.#db
        .insertInto("usage_hour")
        .values(rows)
        .onConflict((conflict) => conflict.columns(HOUR_KEY).doUpdateSet(Object.fromEntries(added)));
    });
  }

  /** @param name of what is composed at most once. @param rows its values, in the order of the statement. */
  #repeated(name: string, rows: readonly object[], compose: () => Compilable): CompiledQuery {
    const text = this.#texts.get(name) ?? compose().compile().sql;
    this.#texts.set(name, text);
    return CompiledQuery.raw(
      text,
      rows.flatMap((row) => Object.values(row)),
    );
  }
}

/** Portions of few sizes, so that few statements serve any number of rows. */
function powersOfTwo<T>(rows: readonly T[]): T[][] {
  const portions: T[][] = [];
  for (let at = 0, size = CHUNK; at < rows.length; at += size) {
    while (size > rows.length - at) size /= 2;
    portions.push(rows.slice(at, at + size));
  }
  return portions;
}

type SumRow = Readonly<Record<(typeof SUMS)[number], number | string>>;

/** Sums come as text from PostgreSQL. */
function sumsFrom(row: SumRow): UsageSums {
  return {
    calls: Number(row.calls),
    estimatedCalls: Number(row.estimated_calls),
    inputTokens: Number(row.input_tokens),
    cachedInputTokens: Number(row.cached_input_tokens),
    outputTokens: Number(row.output_tokens),
    reasoningTokens: Number(row.reasoning_tokens),
    cost: Number(row.cost),
  };
}

function valueOf(row: Readonly<Record<string, string | number>>, column: string): string | number | null {
  const value = row[column] ?? "";
  return value === "" ? null : value;
}

function toRow(record: UsageRecord): UsageRecordTable {
  return {
    id: record.id,
    project_id: record.projectId,
    request_id: record.requestId,
    at: record.at,
    key_id: record.keyId,
    user_id: record.userId,
    agent_id: record.agentId,
    model: record.model,
    upstream: record.upstream,
    dialect: record.dialect,
    stream: record.stream ? 1 : 0,
    outcome: record.outcome,
    status: record.status,
    input_tokens: record.inputTokens,
    cached_input_tokens: record.cachedInputTokens,
    output_tokens: record.outputTokens,
    reasoning_tokens: record.reasoningTokens,
    estimated: record.estimated ? 1 : 0,
    cost: record.cost,
    attempts: record.attempts,
    overhead_us: record.overheadMs === null ? null : Math.round(record.overheadMs * 1000),
    first_token_ms: record.firstTokenMs === null ? null : Math.round(record.firstTokenMs),
    duration_ms: Math.round(record.durationMs),
  };
}

function fromRow(row: Selectable<UsageRecordTable>): UsageRecord {
  return {
    id: row.id,
    projectId: row.project_id,
    requestId: row.request_id,
    at: row.at,
    keyId: row.key_id,
    userId: row.user_id,
    agentId: row.agent_id,
    model: row.model,
    upstream: row.upstream,
    dialect: row.dialect,
    stream: row.stream === 1,
    outcome: row.outcome,
    status: row.status,
    inputTokens: row.input_tokens,
    cachedInputTokens: row.cached_input_tokens,
    outputTokens: row.output_tokens,
    reasoningTokens: row.reasoning_tokens,
    estimated: row.estimated === 1,
    cost: row.cost,
    attempts: row.attempts,
    overheadMs: row.overhead_us === null ? null : row.overhead_us / 1000,
    firstTokenMs: row.first_token_ms,
    durationMs: row.duration_ms,
  };
}

function toHourRow({ of, hour, sums }: HourSums): UsageHourTable {
  return {
    project_id: of.projectId,
    hour,
    model: of.model ?? "",
    key_id: of.keyId ?? "",
    user_id: of.userId ?? "",
    agent_id: of.agentId ?? "",
    upstream: of.upstream ?? "",
    outcome: of.outcome,
    calls: sums.calls,
    estimated_calls: sums.estimatedCalls,
    input_tokens: sums.inputTokens,
    cached_input_tokens: sums.cachedInputTokens,
    output_tokens: sums.outputTokens,
    reasoning_tokens: sums.reasoningTokens,
    cost: sums.cost,
  };
}
