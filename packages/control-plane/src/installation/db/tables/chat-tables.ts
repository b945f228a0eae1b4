/** Rows of chats; `schema.ts` describes the storage format. */

export interface ChatSessionTable {
  id: string;
  project_id: string;
  user_id: string;
  /** For a session opened by `/new`: the previous session, or "" if there was none. Null: opened by its first turn. */
  opened_from: string | null;
  /** The model of its last turn. */
  model: string | null;
  /** Messages and items of its history, without superseded ones. */
  message_count: number;
  item_count: number;
  next_position: number;
  last_turn_id: string | null;
  created_at: number;
  /** When a turn last started or ended. */
  updated_at: number;
  deleted_at: number | null;
  titled_by_person: number;
  title: string;
  /** Normalized like an item's `search_text`. */
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
  /** `open` while the turn runs. */
  status: string;
  /** Incarnation of the process that started it. */
  owner: string;
  why: string;
  dialect: string;
  model: string;
  /** SHA-256 (hex) of what it adds to the history, to detect repeats. */
  question_hash: string;
  /** SHA-256 (hex) of the request. */
  request_hash: string;
  idempotency_key: string | null;
  /** Position of its first item. It starts with `question_count` consecutive user items. */
  first_position: number;
  question_count: number;
  answer_count: number;
  began_at: number;
  ended_at: number | null;
  /** JSON. */
  usage: string | null;
  /** JSON: the items of the response so far, while it runs. */
  partial: string | null;
  /** JSON: the final response object, returned for repeats with its `Idempotency-Key`. */
  response: string | null;
}

/** Immutable except for the status, which only changes to `superseded`. */
export interface ChatItemTable {
  session_id: string;
  position: number;
  id: string;
  turn_id: string;
  status: string;
  type: string;
  /** Set for messages. */
  role: string | null;
  /** Estimated. */
  tokens: number;
  /** Length of `item`. */
  bytes: number;
  created_at: number;
  /** JSON: usage of the whole turn, on the last item of the response. */
  usage: string | null;
  /** A message's normalized text, for search. */
  search_text: string | null;
  /** JSON. */
  item: string;
}
