import { rfc3339 } from "@fairlead/protocol/values/clock";
import type { Kysely, Selectable } from "kysely";
import type { Database, SessionTable } from "../../installation/db/tables/schema.ts";
import type { SignInSession } from "./user.ts";

export interface SessionOwner {
  readonly userId: string;
  readonly platformAdmin: boolean;
  /** Unix milliseconds. */
  readonly expiresAt: number;
}

/** Sign-in sessions. A session token is valid only while its row exists. */
export class SessionStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /** @param cookieToken the sign-in library's lookup token; never disclosed. */
  async insert(session: SignInSession, cookieToken: string): Promise<void> {
    const at = rfc3339(session.createdAt);
    const row: SessionTable = {
      id: session.id,
      expiresAt: rfc3339(session.expiresAt),
      token: cookieToken,
      createdAt: at,
      updatedAt: at,
      ipAddress: session.address,
      userAgent: session.userAgent,
      userId: session.userId,
    };
    await this.#db.insertInto("session").values(row).execute();
  }

  /** One statement, because it runs on every call. */
  async findOwner(sessionId: string): Promise<SessionOwner | null> {
    const row = await this.#db
      .selectFrom("session")
      .innerJoin("user", "user.id", "session.userId")
      .select(["session.userId", "session.expiresAt", "user.platformAdmin"])
      .where("session.id", "=", sessionId)
      .executeTakeFirst();
    if (!row) return null;
    return {
      userId: row.userId,
      platformAdmin: row.platformAdmin === 1,
      expiresAt: Date.parse(row.expiresAt),
    };
  }

  async find(sessionId: string): Promise<SignInSession | null> {
    const row = await this.#db.selectFrom("session").selectAll().where("id", "=", sessionId).executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  /** The user's active sessions, newest first. */
  async list(userId: string, now: number): Promise<readonly SignInSession[]> {
    const query = this.#db.selectFrom("session").selectAll().where("userId", "=", userId);
    const rows = await query.where("expiresAt", ">", rfc3339(now)).orderBy("id", "desc").execute();
    return rows.map(fromRow);
  }

  async extend(
    sessionId: string,
    { now, expiresAt }: { readonly now: number; readonly expiresAt: number },
  ): Promise<void> {
    const change = { expiresAt: rfc3339(expiresAt), updatedAt: rfc3339(now) };
    await this.#db.updateTable("session").set(change).where("id", "=", sessionId).execute();
  }

  /** Also deletes its refresh tokens. @returns whether the user had this session. */
  async delete(userId: string, sessionId: string): Promise<boolean> {
    const tokens = this.#db.deleteFrom("oauthRefreshToken").where("userId", "=", userId);
    await tokens.where("sessionId", "=", sessionId).execute();
    const session = this.#db.deleteFrom("session").where("userId", "=", userId).where("id", "=", sessionId);
    return Number((await session.executeTakeFirstOrThrow()).numDeletedRows) > 0;
  }

  /** Deletes all of the user's sessions except `keptId`. @returns the deleted IDs. */
  async deleteOthers(userId: string, keptId: string | null): Promise<readonly string[]> {
    const others = this.#db.selectFrom("session").select("id").where("userId", "=", userId);
    const rows = await others.where("id", "<>", keptId ?? "").execute();
    for (const { id } of rows) await this.delete(userId, id);
    return rows.map(({ id }) => id);
  }

  async deleteExpired(userId: string, now: number): Promise<void> {
    await this.#db.deleteFrom("session").where("userId", "=", userId).where("expiresAt", "<", rfc3339(now)).execute();
  }

  /** @returns the number deleted, at most `limit`. */
  async deleteEnded(before: number, limit: number): Promise<number> {
    const ended = this.#db.selectFrom("session").select("id").where("expiresAt", "<", rfc3339(before)).limit(limit);
    const { numDeletedRows } = await this.#db.deleteFrom("session").where("id", "in", ended).executeTakeFirstOrThrow();
    return Number(numDeletedRows);
  }
}

function fromRow(row: Selectable<SessionTable>): SignInSession {
  return {
    id: row.id,
    userId: row.userId,
    createdAt: Date.parse(row.createdAt),
    expiresAt: Date.parse(row.expiresAt),
    // The sign-in library stores "" for unknown values.
    userAgent: row.userAgent || null,
    address: row.ipAddress || null,
  };
}
