import type { ProjectId, UserId } from "@fairlead/protocol/ids";
import { type Kysely, type Selectable, sql } from "kysely";
import { z } from "zod";
import type { ChatTurnTable } from "../db/chat-tables.ts";
import type { Database } from "../db/schema.ts";
import { parseExact } from "../inference/bridge/exact-json.ts";
import { isObject } from "../inference/bridge/parse.ts";
import type { JsonObject } from "../inference/bridge/wire.ts";
import type { Dialect } from "../inference/dialect.ts";
import type { TokenUsage } from "../inference/token-usage.ts";
import type { ResponsesItem } from "./chat-item.ts";
import type { ChatScope } from "./chat-scope.ts";
import type { NewTurnItems } from "./turn-input.ts";
import type { TurnStatus } from "./turn-log.ts";

/** A turn as it rests. Times are Unix milliseconds. */
export interface TurnRecord {
  readonly id: string;
  readonly sessionId: string;
  readonly projectId: ProjectId;
  readonly userId: UserId;
  readonly kind: NewTurnItems["kind"];
  readonly status: "open" | TurnStatus;
  readonly why: string;
  readonly dialect: Dialect;
  readonly model: string;
  readonly questionHash: string;
  readonly requestHash: string;
  readonly idempotencyKey: string | null;
  readonly firstPosition: number;
  readonly questionCount: number;
  readonly answerCount: number;
  readonly beganAt: number;
  readonly endedAt: number | null;
  readonly response: JsonObject | null;
}

/** How an open turn ended. */
export interface StoredEnd {
  readonly status: TurnStatus;
  readonly why: string;
  readonly answerCount: number;
  readonly usage: TokenUsage | null;
  readonly response: JsonObject | null;
  readonly at: number;
}

/** The answer of a turn that runs, as far as it is stored. */
export interface PartialAnswer {
  readonly turnId: string;
  readonly beganAt: number;
  readonly items: readonly ResponsesItem[];
}

const kindSchema = z.enum(["question", "outputs"]);
const statusSchema = z.enum(["open", "completed", "incomplete", "failed"]);
const dialectSchema = z.enum(["chat", "responses"]);

/** Written out: SQLite takes an index of some rows alone for what it can see in the statement. */
const OPEN = sql.lit("open");

export class ChatTurnStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  async insert(turn: TurnRecord): Promise<void> {
    const row: ChatTurnTable = {
      id: turn.id,
      session_id: turn.sessionId,
      project_id: turn.projectId,
      user_id: turn.userId,
      kind: turn.kind,
      status: turn.status,
      why: turn.why,
      dialect: turn.dialect,
      model: turn.model,
      question_hash: turn.questionHash,
      request_hash: turn.requestHash,
      idempotency_key: turn.idempotencyKey,
      first_position: turn.firstPosition,
      question_count: turn.questionCount,
      answer_count: turn.answerCount,
      began_at: turn.beganAt,
      ended_at: turn.endedAt,
      usage: null,
      partial: null,
      response: null,
    };
    await this.#db.insertInto("chat_turn").values(row).execute();
  }

  async find(projectId: string, id: string): Promise<TurnRecord | null> {
    const query = this.#db.selectFrom("chat_turn").selectAll().where("project_id", "=", projectId);
    const row = await query.where("id", "=", id).executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  async findByKey({ projectId, userId }: ChatScope, key: string): Promise<TurnRecord | null> {
    const row = await this.#db
      .selectFrom("chat_turn")
      .selectAll()
      .where("project_id", "=", projectId)
      .where("user_id", "=", userId)
      .where("idempotency_key", "=", key)
      .executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  /** A repeat with its key is asked anew from now on. */
  async forgetKey(projectId: string, id: string): Promise<void> {
    const change = this.#db.updateTable("chat_turn").set({ idempotency_key: null, response: null });
    await change.where("project_id", "=", projectId).where("id", "=", id).execute();
  }

  /** By its id alone, which nobody but the one who began it knows. Nothing where it has ended. */
  async setPartial(id: string, items: readonly ResponsesItem[]): Promise<void> {
    const change = this.#db.updateTable("chat_turn").set({ partial: JSON.stringify(items) });
    await change.where("id", "=", id).where("status", "=", "open").execute();
  }

  /** By its id alone, like `setPartial`. @returns null where it was not open any more, or is gone. */
  async end(id: string, { status, why, answerCount, usage, response, at }: StoredEnd): Promise<TurnRecord | null> {
    const row = await this.#db
      .updateTable("chat_turn")
      .set((eb) => ({
        status,
        why,
        answer_count: answerCount,
        ended_at: at,
        usage: usage === null ? null : JSON.stringify(usage),
        partial: null,
        // Nobody can ask for it without a key.
        response: eb
          .case()
          .when("idempotency_key", "is", null)
          .then(null)
          .else(response === null ? null : JSON.stringify(response))
          .end(),
      }))
      .where("id", "=", id)
      .where("status", "=", "open")
      .returningAll()
      .executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  /** Null where none runs. */
  async findPartial(sessionId: string): Promise<PartialAnswer | null> {
    const row = await this.#db
      .selectFrom("chat_turn")
      .select(["id", "began_at", "partial"])
      .where("session_id", "=", sessionId)
      .where("status", "=", OPEN)
      .executeTakeFirst();
    return row ? { turnId: row.id, beganAt: row.began_at, items: itemsFromText(row.partial) } : null;
  }

  /** Of every project: turns that nobody runs any more, when the program starts. */
  async listOpen(limit: number): Promise<readonly PartialAnswer[]> {
    const rows = await this.#db
      .selectFrom("chat_turn")
      .select(["id", "began_at", "partial"])
      .where("status", "=", OPEN)
      .limit(limit)
      .execute();
    return rows.map((row) => ({ turnId: row.id, beganAt: row.began_at, items: itemsFromText(row.partial) }));
  }
}

function fromRow(row: Selectable<ChatTurnTable>): TurnRecord {
  const response = row.response === null ? null : parseExact(row.response);
  return {
    id: row.id,
    sessionId: row.session_id,
    projectId: row.project_id as ProjectId,
    userId: row.user_id as UserId,
    kind: kindSchema.parse(row.kind),
    status: statusSchema.parse(row.status),
    why: row.why,
    dialect: dialectSchema.parse(row.dialect),
    model: row.model,
    questionHash: row.question_hash,
    requestHash: row.request_hash,
    idempotencyKey: row.idempotency_key,
    firstPosition: row.first_position,
    questionCount: row.question_count,
    answerCount: row.answer_count,
    beganAt: row.began_at,
    endedAt: row.ended_at,
    response: isObject(response) ? response : null,
  };
}

function itemsFromText(text: string | null): readonly ResponsesItem[] {
  const value = text === null ? [] : parseExact(text);
  return Array.isArray(value) ? value.filter(isObject) : [];
}
