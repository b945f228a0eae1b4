import { type CompiledQuery, type ExpressionBuilder, type Kysely, type Selectable, sql } from "kysely";
import type { LedgerEntryTable, OpenHoldTable, SpendingTable } from "../db/metering-tables.ts";
import type { Database } from "../db/schema.ts";
import type { BillingBatch } from "./billing-batch.ts";
import { type LedgerEntry, ledgerKindSchema, type OpenHold } from "./ledger.ts";

/** Rows of one statement: both databases bound how many values one may carry. */
const CHUNK = 500;

/** A project's money, as three tables tell of it. Nano-dollars. */
export interface CheckedProject {
  readonly projectId: string;
  readonly entries: number;
  readonly balance: number;
  /** Of its ledger. */
  readonly sum: number;
  /** The lowest of the sums of its ledger's first rows. */
  readonly lowest: number;
  /** What its ledger's holds have taken and not given back. */
  readonly held: number;
  /** What the holds that are open have. */
  readonly openHolds: number;
  /** How many settlements are not their call's first. */
  readonly chargedTwice: number;
}

export class BillingStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  transaction<T>(work: (billing: BillingStore, transaction: Kysely<Database>) => Promise<T>): Promise<T> {
    return this.#db.transaction().execute((transaction) => work(new BillingStore(transaction), transaction));
  }

  /** What writes a batch, all of it or nothing. */
  statements(batch: BillingBatch): readonly CompiledQuery[] {
    return [...this.#append(batch), ...this.#keepHolds(batch), ...this.#spend(batch)];
  }

  /** Inside a transaction of the caller's. */
  async write(batch: BillingBatch): Promise<void> {
    for (const statement of this.statements(batch)) await this.#db.executeQuery(statement);
  }

  /** @returns nano-dollars; 0 for a project that never had any. */
  async balance(projectId: string): Promise<number> {
    const row = await this.#db
      .selectFrom("project_balance")
      .select("balance")
      .where("project_id", "=", projectId)
      .executeTakeFirst();
    return row?.balance ?? 0;
  }

  /** The ledger's own sum, which `balance` must equal. */
  async ledgerSum(projectId: string): Promise<number> {
    const row = await this.#db
      .selectFrom("ledger_entry")
      .select((eb) => eb.fn.sum<number | string | null>("amount").as("sum"))
      .where("project_id", "=", projectId)
      .executeTakeFirst();
    return Number(row?.sum ?? 0);
  }

  /** Of all projects, by one statement: what runs meanwhile is in all of it or in none. Reads every row. */
  async checkedProjects(): Promise<readonly CheckedProject[]> {
    const { rows } = await sql<Record<keyof CheckedProject, string | number>>`
      with running as (
        select project_id, kind, call_id, amount, sum(amount) over (partition by project_id order by id) as total from ledger_entry
      ), ledger as (
        select project_id, count(*) as entries, sum(amount) as sum, min(total) as lowest,
          -sum(case when kind in ('hold', 'release') then amount else 0 end) as held,
          count(case when kind = 'settle' then 1 end) - count(distinct case when kind = 'settle' then call_id end) as twice
        from running group by project_id
      ), holds as (select project_id, sum(held) as held from open_hold group by project_id),
      ids as (select project_id from ledger union select project_id from project_balance union select project_id from holds)
      select ids.project_id as "projectId", coalesce(ledger.entries, 0) as "entries", coalesce(project_balance.balance, 0) as "balance",
        coalesce(ledger.sum, 0) as "sum", coalesce(ledger.lowest, 0) as "lowest", coalesce(ledger.held, 0) as "held",
        coalesce(holds.held, 0) as "openHolds", coalesce(ledger.twice, 0) as "chargedTwice"
      from ids left join ledger on ledger.project_id = ids.project_id
        left join project_balance on project_balance.project_id = ids.project_id
        left join holds on holds.project_id = ids.project_id order by ids.project_id`.execute(this.#db);
    // PostgreSQL sums into numbers without bounds, which come as text.
    return rows.map(({ projectId, ...sums }) => ({
      projectId: String(projectId),
      entries: Number(sums.entries),
      balance: Number(sums.balance),
      sum: Number(sums.sum),
      lowest: Number(sums.lowest),
      held: Number(sums.held),
      openHolds: Number(sums.openHolds),
      chargedTwice: Number(sums.chargedTwice),
    }));
  }

  async hasEntry(id: string): Promise<boolean> {
    const row = await this.#db.selectFrom("ledger_entry").select("id").where("id", "=", id).executeTakeFirst();
    return row !== undefined;
  }

  /** The newest first. `after` is an entry's id. */
  async list(
    projectId: string,
    page: { readonly after: string | null; readonly limit: number },
  ): Promise<readonly LedgerEntry[]> {
    let query = this.#db.selectFrom("ledger_entry").selectAll().where("project_id", "=", projectId);
    if (page.after !== null) query = query.where("id", "<", page.after);
    const rows = await query.orderBy("id", "desc").limit(page.limit).execute();
    return rows.map(fromRow);
  }

  /** What a key or an agent has spent in these periods. */
  async spending(spenderId: string, periods: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const rows = await this.#db
      .selectFrom("spending")
      .select(["period", "spent"])
      .where("spender_id", "=", spenderId)
      .where("period", "in", [...periods])
      .execute();
    return new Map(rows.map(({ period, spent }) => [period, spent]));
  }

  /** The same of several of them. @returns nano-dollars by id, then by period; nothing of those that have spent nothing. */
  async spendingOf(
    spenderIds: readonly string[],
    periods: readonly string[],
  ): Promise<ReadonlyMap<string, ReadonlyMap<string, number>>> {
    if (spenderIds.length === 0) return new Map();
    const rows = await this.#db
      .selectFrom("spending")
      .selectAll()
      .where("spender_id", "in", [...spenderIds])
      .where("period", "in", [...periods])
      .execute();
    return new Map(
      spenderIds.map((id) => [
        id,
        new Map(rows.flatMap((row) => (row.spender_id === id ? [[row.period, row.spent]] : []))),
      ]),
    );
  }

  /** Holds that no settlement has closed, the oldest first. */
  async openHolds(limit: number): Promise<readonly OpenHold[]> {
    const rows = await this.#db.selectFrom("open_hold").selectAll().orderBy("call_id").limit(limit).execute();
    return rows.map(holdFromRow);
  }

  #append({ entries, balances }: BillingBatch): CompiledQuery[] {
    const sums = [...balances].map(([project_id, balance]) => ({ project_id, balance }));
    return [
      ...chunks(entries.map(toRow)).map((rows) => this.#db.insertInto("ledger_entry").values(rows).compile()),
      ...chunks(sums).map((rows) =>
        this.#db
          .insertInto("project_balance")
          .values(rows)
          .onConflict((conflict) =>
            conflict.column("project_id").doUpdateSet({
              balance: sql<number>`${sql.ref("project_balance.balance")} + ${sql.ref("excluded.balance")}`,
            }),
          )
          .compile(),
      ),
    ];
  }

  #keepHolds({ opened, closed }: BillingBatch): CompiledQuery[] {
    return [
      ...chunks([...opened.values()].map(holdToRow)).map((rows) =>
        this.#db
          .insertInto("open_hold")
          .values(rows)
          .onConflict((conflict) =>
            conflict.column("call_id").doUpdateSet((eb: ExpressionBuilder<HoldUpsert, "excluded">) => ({
              held: eb.ref("excluded.held"),
              delivered: eb.ref("excluded.delivered"),
            })),
          )
          .compile(),
      ),
      ...chunks([...closed]).map((ids) => this.#db.deleteFrom("open_hold").where("call_id", "in", ids).compile()),
    ];
  }

  #spend({ spent: bySpender }: BillingBatch): CompiledQuery[] {
    const sums = [...bySpender].flatMap(([spender_id, periods]) =>
      [...periods].map(([period, spent]) => ({ spender_id, period, spent })),
    );
    return chunks(sums).map((rows) =>
      this.#db
        .insertInto("spending")
        .values(rows)
        .onConflict((conflict) =>
          conflict
            .columns(["spender_id", "period"])
            .doUpdateSet((eb: ExpressionBuilder<SpendingUpsert, "excluded">) => ({ spent: eb.ref("excluded.spent") })),
        )
        .compile(),
    );
  }
}

type HoldUpsert = Database & { excluded: OpenHoldTable };
type SpendingUpsert = Database & { excluded: SpendingTable };

function chunks<T>(rows: readonly T[]): T[][] {
  const count = Math.ceil(rows.length / CHUNK);
  return Array.from({ length: count }, (_, at) => rows.slice(at * CHUNK, (at + 1) * CHUNK));
}

function toRow(entry: LedgerEntry): LedgerEntryTable {
  const { id, projectId, at, kind, amount, callId, spenderId, note } = entry;
  return { id, project_id: projectId, at, kind, amount, call_id: callId, spender_id: spenderId, note };
}

function fromRow(row: Selectable<LedgerEntryTable>): LedgerEntry {
  return {
    id: row.id,
    projectId: row.project_id,
    at: row.at,
    kind: ledgerKindSchema.parse(row.kind),
    amount: row.amount,
    callId: row.call_id,
    spenderId: row.spender_id,
    note: row.note,
  };
}

function holdToRow(hold: OpenHold): OpenHoldTable {
  const { callId, projectId, spenderId, held, delivered, openedAt } = hold;
  return { call_id: callId, project_id: projectId, spender_id: spenderId, held, delivered, opened_at: openedAt };
}

function holdFromRow(row: Selectable<OpenHoldTable>): OpenHold {
  return {
    callId: row.call_id,
    projectId: row.project_id,
    spenderId: row.spender_id,
    held: row.held,
    delivered: row.delivered,
    openedAt: row.opened_at,
  };
}
