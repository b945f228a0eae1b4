import { rfc3339 } from "@fairlead/protocol/clock";
import type { Kysely, Selectable } from "kysely";
import type { Database, OAuthRefreshTokenTable } from "../db/schema.ts";
import { DEVICE_CODE_GRANT, hashToken, type OAuthClient, SCOPES } from "./oauth.ts";

export interface RefreshTokenRecord {
  readonly userId: string;
  readonly clientId: string;
  /** Null once the session has ended. */
  readonly sessionId: string | null;
  /** It was exchanged for the next one. */
  readonly spent: boolean;
}

/** Our part of the OAuth server's rows; the library writes the rest. */
export class OAuthStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /** Makes the registered clients those of the configuration. Others keep their rows and can do nothing more. */
  async keepClients(clients: readonly (OAuthClient & { readonly rowId: string })[], now: number): Promise<void> {
    await this.#db.updateTable("oauthClient").set({ disabled: 1 }).execute();
    for (const { rowId, id, name, redirectUris } of clients) {
      const facts = {
        name,
        redirectUris: JSON.stringify(redirectUris),
        disabled: 0,
        scopes: JSON.stringify(SCOPES),
        tokenEndpointAuthMethod: "none",
        applicationType: "native",
        grantTypes: JSON.stringify(["authorization_code", "refresh_token", DEVICE_CODE_GRANT]),
        responseTypes: JSON.stringify(["code"]),
        requirePKCE: 1,
        updatedAt: rfc3339(now),
      };
      await this.#db
        .insertInto("oauthClient")
        .values({ id: rowId, clientId: id, createdAt: rfc3339(now), ...facts })
        .onConflict((conflict) => conflict.column("clientId").doUpdateSet(facts))
        .execute();
    }
  }

  async findRefreshToken(token: string): Promise<RefreshTokenRecord | null> {
    const query = this.#db.selectFrom("oauthRefreshToken").selectAll().where("token", "=", hashToken(token));
    const row = await query.executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  /** Holds the row until the transaction ends, so that one token is exchanged once, whatever comes at the same time. */
  async findRefreshTokenForUpdate(token: string): Promise<RefreshTokenRecord | null> {
    const row = await this.#db
      .updateTable("oauthRefreshToken")
      .set((eb) => ({ id: eb.ref("id") }))
      .where("token", "=", hashToken(token))
      .returningAll()
      .executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  /** Gives a new family its session. */
  async bindRefreshToken(token: string, sessionId: string): Promise<void> {
    const change = this.#db.updateTable("oauthRefreshToken").set({ sessionId });
    await change.where("token", "=", hashToken(token)).execute();
  }

  /** Whether a session was opened for this client. */
  async isSessionOf(sessionId: string, clientId: string): Promise<boolean> {
    const query = this.#db.selectFrom("oauthRefreshToken").select("id").where("sessionId", "=", sessionId);
    return (await query.where("clientId", "=", clientId).limit(1).executeTakeFirst()) !== undefined;
  }

  /** Tokens, codes and what else the library keeps for a moment only. @returns how many there were, at most `limit` of each kind. */
  async deleteEnded(now: number, limit: number): Promise<number> {
    let removed = 0;
    for (const table of ["oauthRefreshToken", "deviceCode", "verification"] as const) {
      const ended = this.#db.selectFrom(table).select("id").where("expiresAt", "<", rfc3339(now)).limit(limit);
      const { numDeletedRows } = await this.#db.deleteFrom(table).where("id", "in", ended).executeTakeFirstOrThrow();
      removed += Number(numDeletedRows);
    }
    return removed;
  }
}

function fromRow(row: Selectable<OAuthRefreshTokenTable>): RefreshTokenRecord {
  return { userId: row.userId, clientId: row.clientId, sessionId: row.sessionId, spent: row.revoked !== null };
}
