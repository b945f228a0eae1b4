import { type CompiledQuery, type ExpressionBuilder, type Kysely, type Selectable, sql } from "kysely";
import type { Database, KeySpendingTable, LedgerEntryTable, OpenHoldTable } from "../db/schema.ts";
import type { BillingBatch } from "./billing-batch.ts";
import { type LedgerEntry, ledgerKindSchema, type OpenHold } from "./ledger.ts";

/** Rows of one statement: both databases bound how many values one may carry. */
const CHUNK = 500;

/** Nano-dollars. */
export interface WrongBalance {
  readonly projectId: string;
  readonly balance: number;
  /** Of its ledger. */
  readonly sum: number;
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

  /** Of all projects; the two are written in one transaction. */
  async wrongBalances(): Promise<readonly WrongBalance[]> {
    const sum = sql<number>`coalesce((select sum(amount) from ledger_entry
      where ledger_entry.project_id = project_balance.project_id), 0)`;
    const rows = await this.#db
      .selectFrom("project_balance")
      .select(["project_id", "balance", sum.as("sum")])
      .where(({ eb }) => eb("balance", "<>", sum))
      .execute();
    return rows.map((row) => ({ projectId: row.project_id, balance: row.balance, sum: Number(row.sum) }));
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

  /** What a key has spent in these periods. */
  async spending(keyId: string, periods: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const rows = await this.#db
      .selectFrom("key_spending")
      .select(["period", "spent"])
      .where("key_id", "=", keyId)
      .where("period", "in", [...periods])
      .execute();
    return new Map(rows.map(({ period, spent }) => [period, spent]));
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

  #spend({ spent: byKey }: BillingBatch): CompiledQuery[] {
    const sums = [...byKey].flatMap(([key_id, periods]) =>
      [...periods].map(([period, spent]) => ({ key_id, period, spent })),
    );
    return chunks(sums).map((rows) =>
      this.#db
        .insertInto("key_spending")
        .values(rows)
        .onConflict((conflict) =>
          conflict
            .columns(["key_id", "period"])
            .doUpdateSet((eb: ExpressionBuilder<SpendingUpsert, "excluded">) => ({ spent: eb.ref("excluded.spent") })),
        )
        .compile(),
    );
  }
}

type HoldUpsert = Database & { excluded: OpenHoldTable };
type SpendingUpsert = Database & { excluded: KeySpendingTable };

function chunks<T>(rows: readonly T[]): T[][] {
  const count = Math.ceil(rows.length / CHUNK);
  return Array.from({ length: count }, (_, at) => rows.slice(at * CHUNK, (at + 1) * CHUNK));
}

function toRow(entry: LedgerEntry): LedgerEntryTable {
  const { id, projectId, at, kind, amount, callId, keyId, note } = entry;
  return { id, project_id: projectId, at, kind, amount, call_id: callId, key_id: keyId, note };
}

function fromRow(row: Selectable<LedgerEntryTable>): LedgerEntry {
  return {
    id: row.id,
    projectId: row.project_id,
    at: row.at,
    kind: ledgerKindSchema.parse(row.kind),
    amount: row.amount,
    callId: row.call_id,
    keyId: row.key_id,
    note: row.note,
  };
}

function holdToRow(hold: OpenHold): OpenHoldTable {
  const { callId, projectId, keyId, held, delivered, openedAt } = hold;
  return { call_id: callId, project_id: projectId, key_id: keyId, held, delivered, opened_at: openedAt };
}

function holdFromRow(row: Selectable<OpenHoldTable>): OpenHold {
  return {
    callId: row.call_id,
    projectId: row.project_id,
    keyId: row.key_id,
    held: row.held,
    delivered: row.delivered,
    openedAt: row.opened_at,
  };
}
