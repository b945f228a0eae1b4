/** Rows of money and of usage; `schema.ts` says how rows rest. */

/** Amounts are nano-dollars. */
export interface LedgerEntryTable {
  id: string;
  project_id: string;
  at: number;
  kind: string;
  amount: number;
  call_id: string | null;
  /** Of a key or an agent. */
  spender_id: string | null;
  note: string;
}

/** The sum of the project's ledger. */
export interface ProjectBalanceTable {
  project_id: string;
  balance: number;
}

/** What is set aside for a call that runs: after a crash it is settled from here. */
export interface OpenHoldTable {
  call_id: string;
  project_id: string;
  spender_id: string | null;
  held: number;
  /** What its caller has surely got is worth this. */
  delivered: number;
  opened_at: number;
}

/** What keys' and agents' calls have cost. */
export interface SpendingTable {
  spender_id: string;
  /** `2026-03-02`, `2026-03` or `total`, UTC. */
  period: string;
  spent: number;
}

/** One call of the inference host; never its content. */
export interface UsageRecordTable extends UsageCountColumns {
  id: string;
  project_id: string;
  request_id: string;
  /** When it ended. */
  at: number;
  key_id: string | null;
  user_id: string | null;
  agent_id: string | null;
  model: string | null;
  upstream: string | null;
  dialect: string;
  stream: number;
  outcome: string;
  status: number | null;
  estimated: number;
  attempts: number;
  overhead_us: number | null;
  first_token_ms: number | null;
  duration_ms: number;
}

/** The sums of those records that share an hour and all that they can be told apart by; "" where a record has null. */
export interface UsageHourTable extends UsageCountColumns {
  project_id: string;
  /** Its beginning. */
  hour: number;
  model: string;
  key_id: string;
  user_id: string;
  agent_id: string;
  upstream: string;
  outcome: string;
  calls: number;
  estimated_calls: number;
}

interface UsageCountColumns {
  input_tokens: number;
  cached_input_tokens: number;
  output_tokens: number;
  reasoning_tokens: number;
  /** Nano-dollars. */
  cost: number;
}
