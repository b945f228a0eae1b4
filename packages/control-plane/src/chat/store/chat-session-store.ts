import { type Kysely, type Selectable, sql } from "kysely";
import { z } from "zod";
import type { ChatSessionTable } from "../../installation/db/tables/chat-tables.ts";
import type { Database } from "../../installation/db/tables/schema.ts";
import type { ChatScope } from "../items/chat-scope.ts";
import { likePattern, searchable } from "../items/chat-search.ts";
import type { SessionPage, SessionRecord } from "../items/chat-session.ts";

const metadataText = z.record(z.string(), z.string());

/** Sessions of one user in one project; those that are being deleted are not there. */
export class ChatSessionStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  async insert(session: SessionRecord): Promise<void> {
    const row: ChatSessionTable = {
      id: session.id,
      project_id: session.projectId,
      user_id: session.userId,
      opened_from: session.openedFrom,
      created_at: session.createdAt,
      deleted_at: null,
      ...activityColumns(session),
      ...settingColumns(session),
    };
    await this.#db.insertInto("chat_session").values(row).execute();
  }

  async find(scope: ChatScope, id: string): Promise<SessionRecord | null> {
    const row = await this.#own(scope).where("id", "=", id).executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  /** Holds the row until the transaction ends. */
  async findForUpdate(scope: ChatScope, id: string): Promise<SessionRecord | null> {
    const row = await this.#db
      .updateTable("chat_session")
      .set((eb) => ({ next_position: eb.ref("next_position") }))
      .where("project_id", "=", scope.projectId)
      .where("user_id", "=", scope.userId)
      .where("id", "=", id)
      .where("deleted_at", "is", null)
      .returningAll()
      .executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  /** One in which nothing was said yet, that `/new` has opened in the same place since then. */
  async findEmpty(scope: ChatScope, openedFrom: string, since: number): Promise<SessionRecord | null> {
    const row = await this.#own(scope)
      .where("created_at", ">=", since)
      .where("opened_from", "=", openedFrom)
      .where("last_turn_id", "is", null)
      .orderBy("created_at", "desc")
      .limit(1)
      .executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  async list(scope: ChatScope, { after, limit }: SessionPage): Promise<SessionRecord[]> {
    let query = this.#own(scope);
    if (after !== null) {
      // Written out, since SQLite's planner takes no index for row values in descending order on its own.
      query = query
        .where("updated_at", "<=", after.updatedAt)
        .where((eb) => eb.or([eb("updated_at", "<", after.updatedAt), eb("id", "<", after.id)]));
    }
    const rows = await query.orderBy("updated_at", "desc").orderBy("id", "desc").limit(limit).execute();
    return rows.map(fromRow);
  }

  /** @returns those of the sessions whose title or messages hold the text. */
  async matching(scope: ChatScope, ids: readonly string[], text: string): Promise<ReadonlySet<string>> {
    if (ids.length === 0) return new Set();
    const pattern = likePattern(text);
    const rows = await this.#db
      .selectFrom("chat_session as s")
      .select("s.id")
      .where("s.project_id", "=", scope.projectId)
      .where("s.user_id", "=", scope.userId)
      .where("s.id", "in", ids)
      .where((eb) =>
        eb.or([
          sql<boolean>`s.search_title like ${pattern} escape '!'`,
          eb.exists(
            eb
              .selectFrom("chat_item as i")
              .select("i.position")
              .whereRef("i.session_id", "=", "s.id")
              .where("i.status", "<>", "superseded")
              .where(sql<boolean>`i.search_text like ${pattern} escape '!'`),
          ),
        ]),
      )
      .execute();
    return new Set(rows.map(({ id }) => id));
  }

  async setSettings(session: SessionRecord): Promise<void> {
    await this.#change(session, settingColumns(session));
  }

  /** What a turn changes. */
  async setActivity(session: SessionRecord): Promise<void> {
    await this.#change(session, { ...activityColumns(session), ...settingColumns(session) });
  }

  async markDeleted(session: SessionRecord, at: number): Promise<void> {
    await this.#change(session, { deleted_at: at });
  }

  #own({ projectId, userId }: ChatScope) {
    return this.#db
      .selectFrom("chat_session")
      .selectAll()
      .where("project_id", "=", projectId)
      .where("user_id", "=", userId)
      .where("deleted_at", "is", null);
  }

  async #change({ projectId, id }: SessionRecord, columns: Partial<ChatSessionTable>): Promise<void> {
    const change = this.#db.updateTable("chat_session").set(columns);
    await change.where("project_id", "=", projectId).where("id", "=", id).execute();
  }
}

function settingColumns({ title, titledByPerson, metadata }: SessionRecord) {
  return {
    title,
    search_title: searchable(title),
    titled_by_person: titledByPerson ? 1 : 0,
    metadata: JSON.stringify(metadata),
  };
}

function activityColumns(session: SessionRecord) {
  return {
    model: session.model,
    message_count: session.messageCount,
    item_count: session.itemCount,
    next_position: session.nextPosition,
    last_turn_id: session.lastTurnId,
    updated_at: session.updatedAt,
  };
}

function fromRow(row: Selectable<ChatSessionTable>): SessionRecord {
  return {
    id: row.id,
    projectId: row.project_id,
    userId: row.user_id,
    title: row.title,
    titledByPerson: row.titled_by_person !== 0,
    model: row.model,
    metadata: metadataText.parse(JSON.parse(row.metadata)),
    messageCount: row.message_count,
    itemCount: row.item_count,
    nextPosition: row.next_position,
    lastTurnId: row.last_turn_id,
    openedFrom: row.opened_from,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}
