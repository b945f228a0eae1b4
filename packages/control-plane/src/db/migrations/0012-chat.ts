import { type Kysely, sql } from "kysely";

/**
 * Chat sessions, their turns and items (decisions/0021). What is large stands last in its row: what comes before it is read without
 * it. A session that is being deleted says since when, until its rows are gone.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}

const STATEMENTS: readonly string[] = [
  `create table chat_session (id text not null primary key, project_id text not null references project (id) on delete cascade,
    user_id text not null, opened_from text, model text, message_count bigint not null, item_count bigint not null,
    next_position bigint not null, last_turn_id text, created_at bigint not null, updated_at bigint not null, deleted_at bigint,
    titled_by_person integer not null, title text not null, search_title text not null, metadata text not null)`,
  `create index chat_session_list_idx on chat_session (project_id, user_id, updated_at, id)`,
  `create index chat_session_age_idx on chat_session (updated_at)`,
  `create index chat_session_opened_idx on chat_session (project_id, user_id, created_at)`,
  `create index chat_session_deleted_idx on chat_session (deleted_at) where deleted_at is not null`,
  `create table chat_turn (id text not null primary key, session_id text not null references chat_session (id) on delete cascade,
    project_id text not null, user_id text not null, kind text not null, status text not null, why text not null,
    dialect text not null, model text not null, question_hash text not null, request_hash text not null, idempotency_key text,
    first_position bigint not null, question_count bigint not null, answer_count bigint not null, began_at bigint not null,
    ended_at bigint, usage text, partial text, response text)`,
  `create index chat_turn_session_idx on chat_turn (session_id)`,
  `create unique index chat_turn_open_idx on chat_turn (session_id) where status = 'open'`,
  `create unique index chat_turn_key_idx on chat_turn (project_id, user_id, idempotency_key) where idempotency_key is not null`,
  `create index chat_turn_answer_idx on chat_turn (began_at) where idempotency_key is not null`,
  `create table chat_item (session_id text not null references chat_session (id) on delete cascade, position bigint not null,
    id text not null, turn_id text not null, status text not null, type text not null, role text, tokens bigint not null, bytes bigint not null,
    created_at bigint not null, usage text, search_text text, item text not null, primary key (session_id, position))`,
  `create unique index chat_item_id_idx on chat_item (session_id, id)`,
];
