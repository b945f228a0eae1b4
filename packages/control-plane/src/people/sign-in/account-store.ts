import { rfc3339 } from "@fairlead/protocol/values/clock";
import type { Kysely } from "kysely";
import type { AccountTable, Database } from "../../installation/db/tables/schema.ts";
import type { LinkedAccount } from "./sign-in.ts";

/** The sign-in library's provider ID for passwords. */
const PASSWORD = "credential";

export interface PasswordAccount {
  readonly userId: string;
  /** In argon2's encoded form; null if the user has no password. */
  readonly hash: string | null;
}

export interface NewAccount {
  readonly id: string;
  readonly userId: string;
  readonly now: number;
}

/** A user's ways to sign in: a password, and accounts of OIDC providers. */
export class AccountStore {
  readonly #db: Kysely<Database>;

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /** @param by an email address in lower case, or a user ID. */
  async findPassword(by: { readonly email: string } | { readonly userId: string }): Promise<PasswordAccount | null> {
    const query = this.#db
      .selectFrom("user")
      .leftJoin("account", (join) =>
        join.onRef("account.userId", "=", "user.id").on("account.providerId", "=", PASSWORD),
      )
      .select(["user.id", "account.password"]);
    const row = await ("email" in by
      ? query.where("user.email", "=", by.email)
      : query.where("user.id", "=", by.userId)
    )
      .limit(1)
      .executeTakeFirst();
    return row ? { userId: row.id, hash: row.password } : null;
  }

  /** @param account its ID is used if the user had no password before. */
  async setPassword(account: NewAccount, hash: string): Promise<void> {
    const { userId, now } = account;
    const change = this.#db.updateTable("account").set({ password: hash, updatedAt: rfc3339(now) });
    const { numUpdatedRows } = await change
      .where("userId", "=", userId)
      .where("providerId", "=", PASSWORD)
      .executeTakeFirstOrThrow();
    if (Number(numUpdatedRows) > 0) return;
    await this.#insert(account, { providerId: PASSWORD, accountId: userId, password: hash });
  }

  async replaceHash(userId: string, hashes: { readonly old: string; readonly next: string }): Promise<void> {
    const change = this.#db.updateTable("account").set({ password: hashes.next }).where("userId", "=", userId);
    await change.where("providerId", "=", PASSWORD).where("password", "=", hashes.old).execute();
  }

  /** @param subject the provider's ID for the user. @returns the user ID. */
  async findUserOf(providerId: string, subject: string): Promise<string | null> {
    const query = this.#db.selectFrom("account").select("userId").where("providerId", "=", providerId);
    return (await query.where("accountId", "=", subject).executeTakeFirst())?.userId ?? null;
  }

  async link(account: NewAccount, provider: { readonly providerId: string; readonly subject: string }): Promise<void> {
    await this.#insert(account, { providerId: provider.providerId, accountId: provider.subject, password: null });
  }

  async unlink(userId: string, providerId: string): Promise<boolean> {
    const query = this.#db.deleteFrom("account").where("userId", "=", userId).where("providerId", "=", providerId);
    return Number((await query.executeTakeFirstOrThrow()).numDeletedRows) > 0;
  }

  /** Accounts of OIDC providers. */
  async listLinked(userId: string): Promise<readonly LinkedAccount[]> {
    const query = this.#db.selectFrom("account").select(["providerId", "createdAt"]).where("userId", "=", userId);
    const rows = await query.where("providerId", "<>", PASSWORD).orderBy("id").execute();
    return rows.map(({ providerId, createdAt }) => ({ providerId, createdAt: Date.parse(createdAt) }));
  }

  async #insert(
    { id, userId, now }: NewAccount,
    account: Pick<AccountTable, "providerId" | "accountId" | "password">,
  ): Promise<void> {
    const at = rfc3339(now);
    // Provider tokens are not kept: Fairlead never calls a provider on a user's behalf.
    const none = { accessToken: null, refreshToken: null, idToken: null, scope: null };
    const never = { accessTokenExpiresAt: null, refreshTokenExpiresAt: null };
    const row: AccountTable = { id, userId, ...account, ...none, ...never, createdAt: at, updatedAt: at };
    await this.#db.insertInto("account").values(row).execute();
  }
}
