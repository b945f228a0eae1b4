import { type CompiledQuery, type ExpressionBuilder, type Kysely, type Selectable, sql } from "kysely";
import type { LedgerEntryTable, OpenHoldTable } from "../../installation/db/tables/metering-tables.ts";
import type { Database } from "../../installation/db/tables/schema.ts";
import type { BillingBatch } from "./billing-batch.ts";
import { type LedgerEntry, ledgerKindSchema, type OpenHold } from "./ledger.ts";

/** Rows per statement: both databases limit the number of parameters. */
const CHUNK = 500;

/** A project's money according to three tables. Nano-dollars. */
export interface CheckedProject {
  readonly projectId: string;
  readonly entries: number;
  readonly balance: number;
  /** The sum of the ledger. */
  readonly sum: number;
  /** The lowest running balance of the ledger. */
  readonly lowest: number;
  /** Held and not yet released, according to the ledger. */
  readonly held: number;
  /** Held by open holds. */
  readonly openHolds: number;
  /** Number of settlements that are not their call's first. */
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

  /** The statements that write a batch; run them in one transaction. */
  statements(batch: BillingBatch): readonly CompiledQuery[] {
    return [...this.#stamp(batch), ...this.#append(batch), ...this.#keepHolds(batch), ...this.#spend(batch)];
  }

  /** Runs in the caller's transaction. */
  async write(batch: BillingBatch): Promise<void> {
    for (const statement of this.statements(batch)) await this.#db.executeQuery(statement);
  }

  /** @returns nano-dollars; 0 if the project never had any. */
  async balance(projectId: string): Promise<number> {
    const row = await this.#db
      .selectFrom("project_balance")
      .select("balance")
      .where("project_id", "=", projectId)
      .executeTakeFirst();
    return row?.balance ?? 0;
  }

  /** The sum of the ledger, which must equal `balance`. */
  async ledgerSum(projectId: string): Promise<number> {
    const row = await this.#db
      .selectFrom("ledger_entry")
      .select((eb) => eb.fn.sum<number | string | null>("amount").as("sum"))
      .where("project_id", "=", projectId)
      .executeTakeFirst();
    return Number(row?.sum ?? 0);
  }

  /** All projects in one statement, so that a concurrent change is either fully included or not at all. Reads every row. */
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
    // PostgreSQL returns these sums as text.
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

  /** Newest first. `after` is an entry ID. */
  async list(
    projectId: string,
    page: { readonly after: string | null; readonly limit: number },
  ): Promise<readonly LedgerEntry[]> {
    let query = this.#db.selectFrom("ledger_entry").selectAll().where("project_id", "=", projectId);
    if (page.after !== null) query = query.where("id", "<", page.after);
    const rows = await query.orderBy("id", "desc").limit(page.limit).execute();
    return rows.map(fromRow);
  }

  /** Spending of a key or agent in these periods. */
  async spending(spenderId: string, periods: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const rows = await this.#db
      .selectFrom("spending")
      .select(["period", "spent"])
      .where("spender_id", "=", spenderId)
      .where("period", "in", [...periods])
      .execute();
    return new Map(rows.map(({ period, spent }) => [period, spent]));
  }

  /** Like `spending`, for several keys or agents. @returns nano-dollars by ID, then by period; omits those without spending. */
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

  /** Unsettled holds of dead processes, oldest first. */
  async lostHolds(living: readonly string[], limit: number): Promise<readonly OpenHold[]> {
    const rows = await this.#db
      .selectFrom("open_hold")
      .selectAll()
      .where("owner", "not in", [...living])
      .orderBy("call_id")
      .limit(limit)
      .execute();
    return rows.map(holdFromRow);
  }

  /** Deletes the stamps of dead processes. */
  async forgetBatches(living: readonly string[]): Promise<void> {
    await this.#db
      .deleteFrom("billing_batch")
      .where("owner", "not in", [...living])
      .execute();
  }

  /** Runs first, so that a batch that is already stored changes nothing. */
  #stamp({ stamp }: BillingBatch): CompiledQuery[] {
    if (stamp === null) return [];
    const { owner, number } = stamp;
    return [
      this.#db.insertInto("billing_batch").values({ owner, number }).compile(),
      this.#db.deleteFrom("billing_batch").where("owner", "=", owner).where("number", "<", number).compile(),
    ];
  }

  #append({ entries, balances }: BillingBatch): CompiledQuery[] {
    return [
      ...chunks(entries.map(toRow)).map((rows) => this.#db.insertInto("ledger_entry").values(rows).compile()),
      ...chunks([...balances]).flatMap((sums) => this.#add(sums)),
    ];
  }

  /** Inserts missing rows first: the store checks the values of an insert, and a negative change is not a valid balance. */
  #add(sums: readonly (readonly [projectId: string, sum: number])[]): CompiledQuery[] {
    const rows = sums.map(([project_id]) => ({ project_id, balance: 0 }));
    const change = sql.join(
      sums.map(([id, sum]) => sql`when ${id} then cast(${sum} as bigint)`),
      sql` `,
    );
    return [
      this.#db
        .insertInto("project_balance")
        .values(rows)
        .onConflict((conflict) => conflict.doNothing())
        .compile(),
      this.#db
        .updateTable("project_balance")
        .set({ balance: sql<number>`balance + case project_id ${change} end` })
        .where(
          "project_id",
          "in",
          sums.map(([id]) => id),
        )
        .compile(),
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
            .doUpdateSet({ spent: sql<number>`${sql.ref("spending.spent")} + ${sql.ref("excluded.spent")}` }),
        )
        .compile(),
    );
  }
}

type HoldUpsert = Database & { excluded: OpenHoldTable };

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
  const { callId, projectId, spenderId, held, delivered, openedAt, owner } = hold;
  return { call_id: callId, project_id: projectId, spender_id: spenderId, held, delivered, opened_at: openedAt, owner };
}

function holdFromRow(row: Selectable<OpenHoldTable>): OpenHold {
  return {
    callId: row.call_id,
    projectId: row.project_id,
    spenderId: row.spender_id,
    held: row.held,
    delivered: row.delivered,
    openedAt: row.opened_at,
    owner: row.owner,
  };
}
