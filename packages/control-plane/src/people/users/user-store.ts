import { rfc3339 } from "@fairlead/protocol/values/clock";
import type { Kysely, Selectable } from "kysely";
import type { Database, UserTable } from "../../installation/db/tables/schema.ts";
import type { UserRecord } from "./user.ts";

export class UserStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  async insert(user: UserRecord): Promise<void> {
    const at = rfc3339(user.createdAt);
    const row: UserTable = {
      id: user.id,
      name: user.name,
      email: user.email,
      emailVerified: 0,
      image: null,
      createdAt: at,
      updatedAt: at,
      platformAdmin: user.platformAdmin ? 1 : 0,
    };
    await this.#db.insertInto("user").values(row).execute();
  }

  async findByEmail(email: string): Promise<UserRecord | null> {
    const row = await this.#db.selectFrom("user").selectAll().where("email", "=", email).executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  async find(userId: string): Promise<UserRecord | null> {
    const row = await this.#db.selectFrom("user").selectAll().where("id", "=", userId).executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  /** @returns null for a user that is gone. */
  async rename(
    userId: string,
    { name, now }: { readonly name: string; readonly now: number },
  ): Promise<UserRecord | null> {
    const change = this.#db
      .updateTable("user")
      .set({ name, updatedAt: rfc3339(now) })
      .where("id", "=", userId);
    const row = await change.returningAll().executeTakeFirst();
    return row ? fromRow(row) : null;
  }

  /** Whether there is any user at all. */
  async hasAny(): Promise<boolean> {
    return (await this.#db.selectFrom("user").select("id").limit(1).executeTakeFirst()) !== undefined;
  }

  async makePlatformAdmin(userId: string, now: number): Promise<void> {
    const change = { platformAdmin: 1, updatedAt: rfc3339(now) };
    await this.#db.updateTable("user").set(change).where("id", "=", userId).execute();
  }
}

function fromRow(row: Selectable<UserTable>): UserRecord {
  return {
    id: row.id,
    email: row.email,
    name: row.name,
    platformAdmin: row.platformAdmin === 1,
    createdAt: Date.parse(row.createdAt),
  };
}
