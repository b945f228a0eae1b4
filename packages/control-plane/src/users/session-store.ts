import { rfc3339 } from "@fairlead/protocol/clock";
import type { Kysely, Selectable } from "kysely";
import type { Database, SessionTable } from "../db/schema.ts";
import type { SignInSession } from "./user.ts";

export interface SessionOwner {
  readonly userId: string;
  readonly platformAdmin: boolean;
  /** Unix milliseconds. */
  readonly expiresAt: number;
}

/** Sign-in sessions: a session token is good only while its row is here. */
export class SessionStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /** @param cookieToken what the sign-in library would look the session up by; nobody is told it. */
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

  /** One statement, since it runs on every call. */
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

  /** Those of a user that go on at this moment, the newest first. */
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

  /** Its refresh tokens go with it. @returns whether the user had it. */
  async delete(userId: string, sessionId: string): Promise<boolean> {
    const tokens = this.#db.deleteFrom("oauthRefreshToken").where("userId", "=", userId);
    await tokens.where("sessionId", "=", sessionId).execute();
    const session = this.#db.deleteFrom("session").where("userId", "=", userId).where("id", "=", sessionId);
    return Number((await session.executeTakeFirstOrThrow()).numDeletedRows) > 0;
  }

  /** @returns the ids of those that are gone: all of the user's but one. */
  async deleteOthers(userId: string, keptId: string | null): Promise<readonly string[]> {
    const others = this.#db.selectFrom("session").select("id").where("userId", "=", userId);
    const rows = await others.where("id", "<>", keptId ?? "").execute();
    for (const { id } of rows) await this.delete(userId, id);
    return rows.map(({ id }) => id);
  }

  async deleteExpired(userId: string, now: number): Promise<void> {
    await this.#db.deleteFrom("session").where("userId", "=", userId).where("expiresAt", "<", rfc3339(now)).execute();
  }

  /** @returns how many there were, at most `limit`. */
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
    // The sign-in library writes "" for what it does not know.
    userAgent: row.userAgent || null,
    address: row.ipAddress || null,
  };
}
