import { rfc3339 } from "@fairlead/protocol/values/clock";
import type { Kysely, Selectable } from "kysely";
import { z } from "zod";
import type { Database, OAuthRefreshTokenTable } from "../../../installation/db/tables/schema.ts";
import { DEVICE_CODE_GRANT, hashToken, type OAuthClient, SCOPES } from "./oauth.ts";

export interface RefreshTokenRecord {
  readonly userId: string;
  readonly clientId: string;
  /** Null once the session has ended. */
  readonly sessionId: string | null;
  /** Already exchanged for the next token. */
  readonly spent: boolean;
}

const redemptionSchema = z.object({ userId: z.string(), clientId: z.string(), sessionId: z.string() });
/** The session that an authorization code was redeemed for. */
export type Redemption = Readonly<z.infer<typeof redemptionSchema>>;

const deviceRequestSchema = z.object({ at: z.number(), address: z.string(), userAgent: z.string() });
/** When and from where a device code was requested. */
export type DeviceRequest = Readonly<z.infer<typeof deviceRequestSchema>>;

/** A row with a limited lifetime. Unix milliseconds. */
interface KeptRow {
  readonly id: string;
  readonly now: number;
  readonly expiresAt: number;
}

/** The OAuth server's rows that we write; the library writes the rest. */
export class OAuthStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /** Replaces the registered clients with the configured ones. Removed clients keep their rows but can do nothing. */
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

  /** Locks the row until the transaction ends, so that concurrent requests cannot exchange a token twice. */
  async findRefreshTokenForUpdate(token: string): Promise<RefreshTokenRecord | null> {
    const row = await this.#db
      .updateTable("oauthRefreshToken")
      .set((eb) => ({ id: eb.ref("id") }))
      .where("token", "=", hashToken(token))
      .returningAll()
      .executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  /** Assigns a new token family to its session. */
  async bindRefreshToken(token: string, sessionId: string): Promise<void> {
    const change = this.#db.updateTable("oauthRefreshToken").set({ sessionId });
    await change.where("token", "=", hashToken(token)).execute();
  }

  /** Stores the session that a code was redeemed for, for as long as that session can last without renewal. */
  async keepRedemption(code: string, session: Redemption, row: KeptRow): Promise<void> {
    await this.#keep(redemptionOf(code), session, row);
  }

  /** @returns the session that a code was redeemed for, on the first call only. */
  async takeRedemption(code: string): Promise<Redemption | null> {
    const taken = this.#db.deleteFrom("verification").where("identifier", "=", redemptionOf(code)).returning("value");
    const row = await taken.executeTakeFirst();
    return row ? redemptionSchema.parse(JSON.parse(row.value)) : null;
  }

  /** Stores where a device code was requested, until it expires. */
  async keepDeviceRequest(userCode: string, request: DeviceRequest, row: KeptRow): Promise<void> {
    await this.#keep(deviceRequestOf(userCode), request, row);
  }

  async findDeviceRequest(userCode: string): Promise<DeviceRequest | null> {
    const found = this.#db
      .selectFrom("verification")
      .select("value")
      .where("identifier", "=", deviceRequestOf(userCode));
    const row = await found.executeTakeFirst();
    return row ? deviceRequestSchema.parse(JSON.parse(row.value)) : null;
  }

  async #keep(identifier: string, value: object, { id, now, expiresAt }: KeptRow): Promise<void> {
    const times = { createdAt: rfc3339(now), updatedAt: rfc3339(now), expiresAt: rfc3339(expiresAt) };
    const row = { id, identifier, value: JSON.stringify(value), ...times };
    await this.#db.insertInto("verification").values(row).execute();
  }

  /** Whether the session was opened for this client. */
  async isSessionOf(sessionId: string, clientId: string): Promise<boolean> {
    const query = this.#db.selectFrom("oauthRefreshToken").select("id").where("sessionId", "=", sessionId);
    return (await query.where("clientId", "=", clientId).limit(1).executeTakeFirst()) !== undefined;
  }

  /** Deletes expired tokens, codes and the library's other short-lived rows. @returns the number deleted, at most `limit` of each kind. */
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

/** Cannot collide with the library's identifiers, which are bare hashes. */
function redemptionOf(code: string): string {
  return `redeemed:${hashToken(code)}`;
}

function deviceRequestOf(userCode: string): string {
  return `device:${hashToken(userCode.toUpperCase().replaceAll(/[^A-Z]/g, ""))}`;
}

function fromRow(row: Selectable<OAuthRefreshTokenTable>): RefreshTokenRecord {
  return { userId: row.userId, clientId: row.clientId, sessionId: row.sessionId, spent: row.revoked !== null };
}
