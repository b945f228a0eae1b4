import { type Kysely, sql } from "kysely";

/** Amounts are nano-dollars. A project's balance is the sum of its ledger; `project_balance` keeps that sum at hand. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}

const STATEMENTS: readonly string[] = [
  `create table ledger_entry (id text not null primary key, project_id text not null, at bigint not null, kind text not null,
    amount bigint not null, call_id text, key_id text, note text not null)`,
  `create index ledger_entry_project_idx on ledger_entry (project_id, id)`,
  `create table project_balance (project_id text not null primary key, balance bigint not null)`,
  `create table open_hold (call_id text not null primary key, project_id text not null, key_id text, held bigint not null,
    delivered bigint not null, opened_at bigint not null)`,
  `create table key_spending (key_id text not null, period text not null, spent bigint not null, primary key (key_id, period))`,
];
