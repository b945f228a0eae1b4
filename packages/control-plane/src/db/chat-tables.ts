/** Rows of chats; `schema.ts` says how rows rest. */

export interface ChatSessionTable {
  id: string;
  project_id: string;
  user_id: string;
  /** Of one that `/new` opened: the session before it, "" where there was none. Null: a first turn opened it. */
  opened_from: string | null;
  /** Of its last turn. */
  model: string | null;
  /** Messages and items of its history: what is superseded does not count. */
  message_count: number;
  item_count: number;
  next_position: number;
  last_turn_id: string | null;
  created_at: number;
  /** When a turn last began or ended. */
  updated_at: number;
  deleted_at: number | null;
  titled_by_person: number;
  title: string;
  /** As `search_text` of an item. */
  search_title: string;
  /** JSON. */
  metadata: string;
}

export interface ChatTurnTable {
  id: string;
  session_id: string;
  project_id: string;
  user_id: string;
  /** `question` or `outputs`. */
  kind: string;
  /** `open` while it runs. */
  status: string;
  why: string;
  dialect: string;
  model: string;
  /** SHA-256 (hex) of what it adds to the history: a repeat is told by it. */
  question_hash: string;
  /** SHA-256 (hex) of the request. */
  request_hash: string;
  idempotency_key: string | null;
  /** Of its first item; its `question_count` items of the user come first, with nothing between them. */
  first_position: number;
  question_count: number;
  answer_count: number;
  began_at: number;
  ended_at: number | null;
  /** JSON. */
  usage: string | null;
  /** JSON: the items of the answer so far, while it runs. */
  partial: string | null;
  /** JSON: the final response object, for repeats with its `Idempotency-Key`. */
  response: string | null;
}

/** Never changed but for its status, and only to `superseded`. */
export interface ChatItemTable {
  session_id: string;
  position: number;
  id: string;
  turn_id: string;
  status: string;
  type: string;
  /** Of a message. */
  role: string | null;
  /** Estimated. */
  tokens: number;
  /** Length of `item`. */
  bytes: number;
  created_at: number;
  /** JSON: of the whole turn, on the last item of its answer. */
  usage: string | null;
  /** A message's text in one spelling, for searches. */
  search_text: string | null;
  /** JSON. */
  item: string;
}
