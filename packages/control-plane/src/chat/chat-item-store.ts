import type { Kysely, Selectable } from "kysely";
import { z } from "zod";
import type { ChatItemTable } from "../db/chat-tables.ts";
import type { Database } from "../db/schema.ts";
import { parseExact } from "../inference/bridge/exact-json.ts";
import { isObject } from "../inference/bridge/parse.ts";
import {
  type ChatItem,
  estimateTokens,
  type ItemPage,
  type ItemRange,
  type ResponsesItem,
  roleOf,
  type StoredItem,
  textOf,
  typeOf,
} from "./chat-item.ts";
import { searchable } from "./chat-search.ts";

/** What cutting has to know of an item, without the item. */
export interface ItemSize {
  readonly position: number;
  readonly tokens: number;
  readonly role: string | null;
}

const statusSchema = z.enum(["completed", "incomplete", "superseded"]);
/** What is read of an item: texts for searches would be as much again. */
const ITEM_COLUMNS = ["id", "turn_id", "position", "status", "created_at", "item"] as const;
const COLUMNS = [...ITEM_COLUMNS, "usage"] as const;
const count = z.number().int();
const usageSchema = z.object({
  inputTokens: count,
  cachedInputTokens: count,
  outputTokens: count,
  reasoningTokens: count,
});

/** Rows are only ever added; a status only ever becomes `superseded`. Whoever asks has found the session in its project. */
export class ChatItemStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  async append(sessionId: string, items: readonly StoredItem[]): Promise<void> {
    // One statement for each: an answer of a thousand items would have more parameters than SQLite takes.
    for (const item of items) await this.#db.insertInto("chat_item").values(toRow(sessionId, item)).execute();
  }

  /** @returns those of the ids that the session has already. */
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

  /** Live ones, the newest first. */
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
  async listFrom(sessionId: string, position: number): Promise<ChatItem[]> {
    const rows = await this.#db
      .selectFrom("chat_item")
      .select(ITEM_COLUMNS)
      .where("session_id", "=", sessionId)
      .where("position", ">=", position)
      .where("status", "<>", "superseded")
      .orderBy("position")
      .execute();
    return rows.map(itemFromRow);
  }

  /** The first ones of a range; few where they are large. */
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

  /** Items of one turn, which stand from that position on. */
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

  /** @returns the types of those that became so. */
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

/** Of items that are read at a time, so that they hold nobody up (design §11). */
const MOST_BYTES = 256 * 1024;

/** @returns how many of them may be read: one at least. */
function countFitting(sizes: readonly { readonly bytes: number }[]): number {
  let total = 0;
  const end = sizes.findIndex(({ bytes }, index) => {
    total += bytes;
    return index > 0 && total > MOST_BYTES;
  });
  return end === -1 ? sizes.length : end;
}

/** SQLite takes 32,766 parameters; PostgreSQL is quick with some hundred. */
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
    type: typeOf(item.item),
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

function itemFromText(text: string): ResponsesItem {
  const value = parseExact(text);
  if (!isObject(value)) throw new TypeError("an item of the chat history is no object");
  return value;
}
