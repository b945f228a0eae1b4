import { type Kysely, sql } from "kysely";

/** Agents have limits and budgets as project keys do, and count in usage by their own name. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}

const STATEMENTS: readonly string[] = [
  `alter table ledger_entry rename column key_id to spender_id`,
  `alter table open_hold rename column key_id to spender_id`,
  `alter table key_spending rename to spending`,
  `alter table spending rename column key_id to spender_id`,
  `alter table usage_record rename column worker_id to agent_id`,
  `alter table usage_hour rename column worker_id to agent_id`,
];
