import { rfc3339 } from "@fairlead/protocol/clock";
import type { Kysely } from "kysely";
import type { Database, SessionTable } from "../db/schema.ts";
import type { SignInSessionRecord } from "./user.ts";

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
  async insert(session: SignInSessionRecord, cookieToken: string): Promise<void> {
    const at = rfc3339(session.createdAt);
    const row: SessionTable = {
      id: session.id,
      expiresAt: rfc3339(session.expiresAt),
      token: cookieToken,
      createdAt: at,
      updatedAt: at,
      ipAddress: null,
      userAgent: null,
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

  async deleteExpired(userId: string, now: number): Promise<void> {
    await this.#db.deleteFrom("session").where("userId", "=", userId).where("expiresAt", "<", rfc3339(now)).execute();
  }
}
