import { type Compilable, CompiledQuery, type Expression, type Kysely, type Selectable, sql } from "kysely";
import type { UsageHourTable, UsageRecordTable } from "../../installation/db/tables/metering-tables.ts";
import type { Database } from "../../installation/db/tables/schema.ts";
import {
  DAY_MS,
  NOTHING_USED,
  type UsageDimension,
  type UsageGroup,
  type UsageRange,
  type UsageRecord,
  type UsageSums,
} from "./usage.ts";
import type { HourSums, UsageBatch } from "./usage-batch.ts";

/** Conditions are combined with AND; undefined matches all. Times are Unix milliseconds. */
export interface CallFilter {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
  readonly keyId?: string | undefined;
  readonly agentId?: string | undefined;
  readonly model?: string | undefined;
  readonly outcome?: string | undefined;
}

export interface SumsQuery extends UsageRange {
  readonly by: readonly UsageDimension[];
  readonly page: {
    /** Number of groups before the page. */
    readonly offset: number;
    readonly limit: number;
    /** Maximum number of groups on all pages. */
    readonly most: number;
  };
}

export interface UsagePage {
  /** Unordered. */
  readonly groups: readonly UsageGroup[];
  /** The sum of groups on other pages. */
  readonly elsewhere: UsageSums;
  /** The sum of groups on no page. */
  readonly other: UsageSums;
  /** Whether more pages follow. */
  readonly more: boolean;
}

/** Rows per statement: both databases limit the number of parameters. */
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
  // A literal, because PostgreSQL treats two parameters as different expressions.
  day: sql<number>`${sql.ref("hour")} - ${sql.ref("hour")} % ${sql.lit(DAY_MS)}`,
  hour: sql.ref<number>("hour"),
  model: sql.ref<string>("model"),
  key: sql.ref<string>("key_id"),
  user: sql.ref<string>("user_id"),
  agent: sql.ref<string>("agent_id"),
  upstream: sql.ref<string>("upstream"),
  outcome: sql.ref<string>("outcome"),
};

/** Records are only added, together with the increments of their hourly sums, and deleted by age. */
export class UsageStore {
  readonly #db: Kysely<Database>;
  /** Statements by table and number of rows. Composing them costs more than everything else about a record. */
  readonly #texts = new Map<string, string>();

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /** The statements that write a batch; run them in one transaction. */
  statements(batch: UsageBatch): readonly CompiledQuery[] {
    return [
      ...powersOfTwo(batch.records.map(toRow)).map((rows) => this.#insert(rows)),
      ...powersOfTwo(batch.hours().map(toHourRow)).map((rows) => this.#addToHours(rows)),
    ];
  }

  /** Newest first. `after` is a record ID. */
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

  /** From the hourly sums, by at least one dimension, most expensive first. Read in one snapshot so that the numbers add up. */
  async sums(projectId: string, { from, to, by, page }: SumsQuery): Promise<UsagePage> {
    const columns = by.map((dimension) => COLUMNS[dimension]);
    const { offset, limit, most } = page;
    const ranked = this.#db
      .selectFrom("usage_hour")
      .select((eb) => SUMS.map((column) => eb.fn.sum<number | string>(column).as(column)))
      .select(columns.map((column, at) => sql<string | number>`${column}`.as(`group_${at}`)))
      .select(sql<number>`row_number() over (order by sum(cost) desc, ${sql.join(columns)})`.as("place"))
      .where("project_id", "=", projectId)
      .where("hour", ">=", from)
      .where("hour", "<", to)
      .groupBy(columns)
      .as("ranked");
    const end = Math.min(offset + limit, most);
    // Literals, because PostgreSQL treats two parameters as different expressions.
    const [before, last, listed] = [sql.lit(offset), sql.lit(end), sql.lit(most)];
    const bucket = sql<number>`case when place > ${before} and place <= ${last} then place when place <= ${listed} then 0 else -1 end`;
    const rows = await this.#db
      .selectFrom(ranked)
      .select(bucket.as("bucket"))
      .select((eb) => SUMS.map((column) => eb.fn.sum<number | string>(column).as(column)))
      .select((eb) => eb.fn.max<number | string>("place").as("last"))
      .select(by.map((_, at) => sql<string | number>`max(${sql.ref(`group_${at}`)})`.as(`group_${at}`)))
      .groupBy(bucket)
      .execute();
    return toPage(rows, by.length, end);
  }

  /** Deletes up to `limit` records from before this time. @returns the number deleted. */
  async deleteRecordsBefore(at: number, limit: number): Promise<number> {
    const { numDeletedRows } = await this.#db
      .deleteFrom("usage_record")
      .where("id", "in", (eb) => eb.selectFrom("usage_record").select("id").where("at", "<", at).limit(limit))
      .executeTakeFirst();
    return Number(numDeletedRows);
  }

  /** Like `deleteRecordsBefore`, for the hourly sums. */
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

  /** @param name cache key of the composed statement. @param rows its values, in the statement's order. */
  #repeated(name: string, rows: readonly object[], compose: () => Compilable): CompiledQuery {
    const text = this.#texts.get(name) ?? compose().compile().sql;
    this.#texts.set(name, text);
    return CompiledQuery.raw(
      text,
      rows.flatMap((row) => Object.values(row)),
    );
  }
}

type GroupRow = SumRow & { readonly bucket: number | string; readonly last: number | string } & Readonly<
    Record<string, string | number>
  >;

/** @param end index of the page's last group. */
function toPage(rows: readonly GroupRow[], dimensions: number, end: number): UsagePage {
  const page = { groups: [] as UsageGroup[], elsewhere: NOTHING_USED, other: NOTHING_USED, more: false };
  for (const row of rows) {
    const sums = sumsFrom(row);
    const bucket = Number(row.bucket);
    if (bucket > 0) {
      const values = Array.from({ length: dimensions }, (_, at) => valueOf(row, `group_${at}`));
      page.groups.push({ values, sums });
    } else if (bucket === 0) {
      page.elsewhere = sums;
      page.more = Number(row.last) > end;
    } else {
      page.other = sums;
    }
  }
  return page;
}

/** Splits into chunks of a few fixed sizes, so that a few statements cover any number of rows. */
function powersOfTwo<T>(rows: readonly T[]): T[][] {
  const portions: T[][] = [];
  for (let at = 0, size = CHUNK; at < rows.length; at += size) {
    while (size > rows.length - at) size /= 2;
    portions.push(rows.slice(at, at + size));
  }
  return portions;
}

type SumRow = Readonly<Record<(typeof SUMS)[number], number | string>>;

/** PostgreSQL returns sums as text. */
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
