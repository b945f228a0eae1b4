import { parseStoredExact } from "@fairlead/dialects/json/exact-json";
import { isObject } from "@fairlead/dialects/json/parse";
import type { Kysely, Selectable } from "kysely";
import { z } from "zod";
import type { ChatItemTable } from "../../installation/db/tables/chat-tables.ts";
import type { Database } from "../../installation/db/tables/schema.ts";
import {
  type ChatItem,
  estimateTokens,
  type ItemPage,
  type ItemRange,
  itemTypeOf,
  type ResponsesItem,
  roleOf,
  type StoredItem,
  textOf,
} from "../items/chat-item.ts";
import { searchable } from "../items/chat-search.ts";
import type { SizedItem } from "../items/history-input.ts";

/** What truncation needs of an item, without its content. */
export interface ItemSize {
  readonly position: number;
  readonly tokens: number;
  readonly role: string | null;
}

/** An item with what cutting has to know of it. */
export interface HistoryItem extends ChatItem, SizedItem {
  /** Of its JSON. */
  readonly bytes: number;
}

export interface ItemPosition {
  readonly turnId: string;
  readonly position: number;
}

const statusSchema = z.enum(["completed", "incomplete", "superseded"]);
/** Columns to read; the search texts would double the size. */
const ITEM_COLUMNS = ["id", "turn_id", "position", "status", "created_at", "item"] as const;
const COLUMNS = [...ITEM_COLUMNS, "usage"] as const;
const HISTORY_COLUMNS = [...ITEM_COLUMNS, "tokens", "bytes", "role"] as const;
const count = z.number().int();
const usageSchema = z.object({
  inputTokens: count,
  cachedInputTokens: count,
  outputTokens: count,
  reasoningTokens: count,
});

/** Rows are appended, or removed from the end; a status only ever becomes `superseded`. The caller has checked the session's project. */
export class ChatItemStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  async append(sessionId: string, items: readonly StoredItem[]): Promise<void> {
    // One statement per item: a thousand items would exceed SQLite's parameter limit.
    for (const item of items) await this.#db.insertInto("chat_item").values(toRow(sessionId, item)).execute();
  }

  /** @returns the ids that the session already has. */
  async known(sessionId: string, ids: readonly string[]): Promise<ReadonlySet<string>> {
    const found = new Set<string>();
    for (let at = 0; at < ids.length; at += MOST_IDS) {
      const rows = await this.#db
        .selectFrom("chat_item")
        .select("id")
        .where("session_id", "=", sessionId)
        .where("id", "in", ids.slice(at, at + MOST_IDS))
        .execute();
      for (const { id } of rows) found.add(id);
    }
    return found;
  }

  /** Live items, newest first. */
  async sizesBefore(sessionId: string, position: number, limit: number): Promise<ItemSize[]> {
    return await this.#db
      .selectFrom("chat_item")
      .select(["position", "tokens", "role"])
      .where("session_id", "=", sessionId)
      .where("position", "<", position)
      .where("status", "<>", "superseded")
      .orderBy("position", "desc")
      .limit(limit)
      .execute();
  }

  /** All live ones from a position on. */
  async listFrom(sessionId: string, position: number): Promise<HistoryItem[]> {
    const rows = await this.#db
      .selectFrom("chat_item")
      .select(HISTORY_COLUMNS)
      .where("session_id", "=", sessionId)
      .where("position", ">=", position)
      .where("status", "<>", "superseded")
      .orderBy("position")
      .execute();
    return rows.map(historyItem);
  }

  /** The first items of a range; fewer if they are large. */
  async list(sessionId: string, range: ItemRange): Promise<ItemPage> {
    const { after, before, order, limit, withSuperseded } = range;
    let query = this.#db.selectFrom("chat_item").where("session_id", "=", sessionId).orderBy("position", order);
    if (after !== null) query = query.where("position", ">", after);
    if (before !== null) query = query.where("position", "<", before);
    if (!withSuperseded) query = query.where("status", "<>", "superseded");
    const sizes = await query
      .select("bytes")
      .limit(limit + 1)
      .execute();
    const count = countFitting(sizes.slice(0, limit));
    const rows = count === 0 ? [] : await query.select(COLUMNS).limit(count).execute();
    return { items: rows.map(fromRow), more: sizes.length > count };
  }

  /** Items of one turn, starting at that position. */
  async listOfTurn(sessionId: string, turnId: string, firstPosition: number): Promise<StoredItem[]> {
    const rows = await this.#db
      .selectFrom("chat_item")
      .select(COLUMNS)
      .where("session_id", "=", sessionId)
      .where("position", ">=", firstPosition)
      .where("turn_id", "=", turnId)
      .orderBy("position")
      .execute();
    return rows.map(fromRow);
  }

  /** The last live item before a position, or null. */
  async lastBefore(sessionId: string, position: number): Promise<ItemPosition | null> {
    const row = await this.#db
      .selectFrom("chat_item")
      .select(["turn_id", "position"])
      .where("session_id", "=", sessionId)
      .where("position", "<", position)
      .where("status", "<>", "superseded")
      .orderBy("position", "desc")
      .limit(1)
      .executeTakeFirst();
    return row ? { turnId: row.turn_id, position: row.position } : null;
  }

  /** Deletes permanently. @returns the types of the deleted live items. */
  async deleteAfter(sessionId: string, position: number): Promise<readonly string[]> {
    const rows = await this.#db
      .deleteFrom("chat_item")
      .where("session_id", "=", sessionId)
      .where("position", ">", position)
      .returning(["type", "status"])
      .execute();
    return rows.filter(({ status }) => status !== "superseded").map(({ type }) => type);
  }

  /** @returns the types of the items that became superseded. */
  async supersede(sessionId: string, turnId: string, firstPosition: number): Promise<readonly string[]> {
    const rows = await this.#db
      .updateTable("chat_item")
      .set({ status: "superseded" })
      .where("session_id", "=", sessionId)
      .where("position", ">=", firstPosition)
      .where("turn_id", "=", turnId)
      .where("status", "<>", "superseded")
      .returning("type")
      .execute();
    return rows.map(({ type }) => type);
  }
}

/** Bytes read at a time, to keep the event loop responsive. */
const MOST_BYTES = 256 * 1024;

/** @returns the number of items to read, at least one. */
function countFitting(sizes: readonly { readonly bytes: number }[]): number {
  let total = 0;
  const end = sizes.findIndex(({ bytes }, index) => {
    total += bytes;
    return index > 0 && total > MOST_BYTES;
  });
  return end === -1 ? sizes.length : end;
}

/** SQLite accepts 32,766 parameters; PostgreSQL is fast with a few hundred. */
const MOST_IDS = 500;

function toRow(sessionId: string, item: StoredItem): ChatItemTable {
  const text = textOf(item.item);
  const json = JSON.stringify(item.item);
  return {
    session_id: sessionId,
    position: item.position,
    id: item.id,
    turn_id: item.turnId,
    status: item.status,
    type: itemTypeOf(item.item),
    role: roleOf(item.item),
    tokens: estimateTokens(item.item),
    bytes: Buffer.byteLength(json),
    created_at: item.createdAt,
    usage: item.usage === null ? null : JSON.stringify(item.usage),
    search_text: text === "" ? null : searchable(text),
    item: json,
  };
}

type Row<Column extends keyof ChatItemTable> = Pick<Selectable<ChatItemTable>, Column>;

function fromRow(row: Row<(typeof COLUMNS)[number]>): StoredItem {
  const usage = row.usage === null ? null : usageSchema.parse(JSON.parse(row.usage));
  return { ...itemFromRow(row), usage };
}

function itemFromRow(row: Row<(typeof ITEM_COLUMNS)[number]>): ChatItem {
  return {
    id: row.id,
    turnId: row.turn_id,
    position: row.position,
    status: statusSchema.parse(row.status),
    item: itemFromText(row.item),
    createdAt: row.created_at,
  };
}

function historyItem(row: Row<(typeof HISTORY_COLUMNS)[number]>): HistoryItem {
  return { ...itemFromRow(row), tokens: row.tokens, bytes: row.bytes, isQuestion: row.role === "user" };
}

function itemFromText(text: string): ResponsesItem {
  const value = parseStoredExact(text);
  if (!isObject(value)) throw new TypeError("an item of the chat history is not an object");
  return value;
}
