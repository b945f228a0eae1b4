/** Rows of money and usage; `schema.ts` describes the storage format. */

/** Amounts are nano-dollars. */
export interface LedgerEntryTable {
  id: string;
  project_id: string;
  at: number;
  kind: string;
  amount: number;
  call_id: string | null;
  /** ID of a key or agent. */
  spender_id: string | null;
  note: string;
}

/** The sum of the project's ledger; never negative. */
export interface ProjectBalanceTable {
  project_id: string;
  balance: number;
}

/** Money reserved for a running call; a crash is settled from this row. */
export interface OpenHoldTable {
  call_id: string;
  project_id: string;
  spender_id: string | null;
  held: number;
  /** The value of what the client has certainly received. */
  delivered: number;
  opened_at: number;
  /** Incarnation of the process that runs the call. */
  owner: string;
}

/** The last batch that each process wrote, to detect a repeated write. */
export interface BillingBatchTable {
  owner: string;
  number: number;
}

/** Cost of calls per key or agent. */
export interface SpendingTable {
  spender_id: string;
  /** `2026-03-02`, `2026-03` or `total`, UTC. */
  period: string;
  spent: number;
}

/** One inference call; never its content. */
export interface UsageRecordTable extends UsageCountColumns {
  id: string;
  project_id: string;
  request_id: string;
  /** When the call ended. */
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

/** Sums of records with the same hour and dimensions; "" where a record has null. */
export interface UsageHourTable extends UsageCountColumns {
  project_id: string;
  /** Start of the hour. */
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
