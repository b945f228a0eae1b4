import type { TokenUsage } from "@fairlead/dialects/calls/token-usage";
import type { JsonObject } from "@fairlead/dialects/convert/wire";
import { parseStoredExact } from "@fairlead/dialects/json/exact-json";
import { isObject } from "@fairlead/dialects/json/parse";
import type { ProjectId, UserId } from "@fairlead/protocol/values/ids";
import { type Kysely, type Selectable, sql } from "kysely";
import { z } from "zod";
import type { ChatTurnTable } from "../../installation/db/tables/chat-tables.ts";
import type { Database } from "../../installation/db/tables/schema.ts";
import type { ResponsesItem } from "../items/chat-item.ts";
import type { ChatScope } from "../items/chat-scope.ts";
import { TURN_DIALECTS, type TurnDialect } from "../items/turn-dialect.ts";
import type { NewTurnItems } from "../items/turn-input.ts";
import type { TurnStatus } from "./turn-log.ts";

/** A stored turn. Times are Unix milliseconds. */
export interface TurnRecord {
  readonly id: string;
  readonly sessionId: string;
  readonly projectId: ProjectId;
  readonly userId: UserId;
  readonly kind: NewTurnItems["kind"];
  readonly status: "open" | TurnStatus;
  /** Incarnation of the process that started it. */
  readonly owner: string;
  readonly why: string;
  readonly dialect: TurnDialect;
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

/** A running turn's response as far as it is stored. */
export interface PartialAnswer {
  readonly turnId: string;
  readonly beganAt: number;
  readonly items: readonly ResponsesItem[];
}

const kindSchema = z.enum(["question", "outputs"]);
const statusSchema = z.enum(["open", "completed", "incomplete", "failed"]);
const dialectSchema = z.enum(TURN_DIALECTS);

/** A literal: SQLite uses a partial index only if the statement shows its condition. */
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
      owner: turn.owner,
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

  /** A retry with its key runs again. */
  async forgetKey(projectId: string, id: string): Promise<void> {
    const change = this.#db.updateTable("chat_turn").set({ idempotency_key: null, response: null });
    await change.where("project_id", "=", projectId).where("id", "=", id).execute();
  }

  /** By ID only, which only its owner knows. Does nothing if the turn has ended. */
  async setPartial(id: string, items: readonly ResponsesItem[]): Promise<void> {
    const change = this.#db.updateTable("chat_turn").set({ partial: JSON.stringify(items) });
    await change.where("id", "=", id).where("status", "=", "open").execute();
  }

  /** By ID only, like `setPartial`. @returns null if the turn was not open or does not exist. */
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
        // Without a key it can never be requested again.
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

  /** Null if none is running. */
  async findPartial(sessionId: string): Promise<PartialAnswer | null> {
    const row = await this.#db
      .selectFrom("chat_turn")
      .select(["id", "began_at", "partial"])
      .where("session_id", "=", sessionId)
      .where("status", "=", OPEN)
      .executeTakeFirst();
    return row ? { turnId: row.id, beganAt: row.began_at, items: itemsFromText(row.partial) } : null;
  }

  /** Permanently deletes the turns after a position. */
  async deleteAfter(sessionId: string, position: number): Promise<void> {
    const removal = this.#db.deleteFrom("chat_turn").where("session_id", "=", sessionId);
    await removal.where("first_position", ">", position).execute();
  }

  /** Open turns of dead processes, in all projects. */
  async listLost(living: readonly string[], limit: number): Promise<readonly PartialAnswer[]> {
    const rows = await this.#db
      .selectFrom("chat_turn")
      .select(["id", "began_at", "partial"])
      .where("status", "=", OPEN)
      .where("owner", "not in", [...living])
      .limit(limit)
      .execute();
    return rows.map((row) => ({ turnId: row.id, beganAt: row.began_at, items: itemsFromText(row.partial) }));
  }
}

function fromRow(row: Selectable<ChatTurnTable>): TurnRecord {
  const response = row.response === null ? null : parseStoredExact(row.response);
  return {
    id: row.id,
    sessionId: row.session_id,
    projectId: row.project_id as ProjectId,
    userId: row.user_id as UserId,
    kind: kindSchema.parse(row.kind),
    status: statusSchema.parse(row.status),
    owner: row.owner,
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
  const value = text === null ? [] : parseStoredExact(text);
  return Array.isArray(value) ? value.filter(isObject) : [];
}
