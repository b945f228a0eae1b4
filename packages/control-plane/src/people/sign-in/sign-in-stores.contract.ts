import { isUniqueViolation } from "@fairlead/hosting/errors/store-errors";
import { rfc3339 } from "@fairlead/protocol/values/clock";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import { insertUser, type OpenStore } from "../../testing.fixture.ts";
import { SessionStore } from "../users/session-store.ts";
import { AccountStore } from "./account-store.ts";
import { hashToken } from "./oauth/oauth.ts";
import { OAuthStore } from "./oauth/oauth-store.ts";

export function signInStoresContract(name: string, open: OpenStore): void {
  describe(`the sign-in stores on ${name}`, () => {
    let store: OpenedDatabase;
    let accounts: AccountStore;
    let oauth: OAuthStore;
    beforeEach(async () => {
      store = await open();
      accounts = new AccountStore(store.db);
      oauth = new OAuthStore(store.db);
      for (const id of ["usr_a", "usr_b"]) await insertUser(store, id);
    });
    afterEach(() => store.close());

    test("keep one password per user, and find it by user ID or address", async () => {
      const none = { userId: "usr_a", hash: null };
      expect(await accounts.findPassword({ userId: "usr_a" })).toEqual(none);
      expect(await accounts.findPassword({ email: "usr_a@example.org" })).toEqual(none);
      expect(await accounts.findPassword({ email: "nobody@example.org" })).toBeNull();
      await accounts.setPassword({ id: "sir_1", userId: "usr_a", now: 1 }, "first");
      await accounts.setPassword({ id: "sir_2", userId: "usr_a", now: 2 }, "second");
      expect(await accounts.findPassword({ email: "usr_a@example.org" })).toEqual({ userId: "usr_a", hash: "second" });
      expect(await accounts.findPassword({ userId: "usr_b" })).toMatchObject({ hash: null });
    });

    test("replace a hash only if it is still the one that was checked", async () => {
      await accounts.setPassword({ id: "sir_1", userId: "usr_a", now: 1 }, "new");
      await accounts.replaceHash("usr_a", { old: "old", next: "old again" });
      expect(await accounts.findPassword({ userId: "usr_a" })).toMatchObject({ hash: "new" });
      await accounts.replaceHash("usr_a", { old: "new", next: "newer" });
      expect(await accounts.findPassword({ userId: "usr_a" })).toMatchObject({ hash: "newer" });
    });

    test("keep one user for an account of a provider", async () => {
      const acme = { providerId: "acme", subject: "s' or 1=1 --" };
      await accounts.link({ id: "sir_1", userId: "usr_a", now: 1000 }, acme);
      await accounts.setPassword({ id: "sir_2", userId: "usr_a", now: 1 }, "hash");
      expect(await accounts.findUserOf("acme", acme.subject)).toBe("usr_a");
      expect(await accounts.findUserOf("other", acme.subject)).toBeNull();
      expect(await accounts.listLinked("usr_a")).toEqual([{ providerId: "acme", createdAt: 1000 }]);
      const second = accounts.link({ id: "sir_3", userId: "usr_b", now: 1 }, acme);
      await expect(second).rejects.toSatisfy(isUniqueViolation);
      expect(await accounts.unlink("usr_b", "acme")).toBe(false);
      expect(await accounts.unlink("usr_a", "acme")).toBe(true);
      expect(await accounts.findPassword({ userId: "usr_a" })).toMatchObject({ hash: "hash" });
    });

    async function insertToken(
      token: string,
      values: { sessionId?: string | null; expiresAt?: number } = {},
    ): Promise<void> {
      const { sessionId = null, expiresAt = 10_000 } = values;
      const facts = {
        clientId: "cli",
        userId: "usr_a",
        expiresAt: rfc3339(expiresAt),
        createdAt: rfc3339(0),
        scopes: "[]",
      };
      const row = { id: token, token: hashToken(token), sessionId, ...facts };
      await store.db.insertInto("oauthRefreshToken").values(row).execute();
    }

    test("keep exactly the configured clients, whatever was there before", async () => {
      const cli = { id: "cli", rowId: "sir_1", name: "CLI", redirectUris: ["http://127.0.0.1/cb"] };
      await oauth.keepClients([cli, { ...cli, id: "app", rowId: "sir_2" }], 1);
      await oauth.keepClients([{ ...cli, rowId: "sir_3", name: "Command line" }], 2);
      const rows = store.db.selectFrom("oauthClient").select(["id", "clientId", "name", "disabled"]).orderBy("id");
      expect(await rows.execute()).toEqual([
        { id: "sir_1", clientId: "cli", name: "Command line", disabled: 0 },
        { id: "sir_2", clientId: "app", name: "CLI", disabled: 1 },
      ]);
    });

    test("delete a session's refresh tokens with it, and no others", async () => {
      await oauth.keepClients([{ id: "cli", rowId: "sir_1", name: "CLI", redirectUris: [] }], 1);
      const sessions = new SessionStore(store.db);
      const session = { userId: "usr_a", createdAt: 0, expiresAt: 9000, userAgent: "CLI", address: null };
      for (const id of ["sis_1", "sis_2"]) {
        await sessions.insert({ ...session, id }, `cookie of ${id}`);
        await insertToken(`token of ${id}`);
        await oauth.bindRefreshToken(`token of ${id}`, id);
      }
      expect(await oauth.isSessionOf("sis_1", "cli")).toBe(true);
      expect(await oauth.isSessionOf("sis_1", "app")).toBe(false);
      expect(await sessions.delete("usr_b", "sis_1")).toBe(false);
      expect(await sessions.delete("usr_a", "sis_1")).toBe(true);
      expect(await oauth.findRefreshToken("token of sis_1")).toBeNull();
      expect(await oauth.findRefreshTokenForUpdate("token of sis_2")).toEqual({
        userId: "usr_a",
        clientId: "cli",
        sessionId: "sis_2",
        spent: false,
      });
      expect(await sessions.find("sis_2")).toEqual({ ...session, id: "sis_2" });
    });

    test("delete what has expired, a limited number at a time", async () => {
      await oauth.keepClients([{ id: "cli", rowId: "sir_1", name: "CLI", redirectUris: [] }], 1);
      for (const n of [1, 2, 3]) await insertToken(`t${n}`, { expiresAt: n * 1000 });
      expect(await oauth.deleteEnded(2500, 1)).toBe(1);
      expect(await oauth.deleteEnded(2500, 10)).toBe(1);
      expect(await oauth.findRefreshToken("t3")).not.toBeNull();
    });

    test("list running sessions, extend them, and end all but one", async () => {
      const sessions = new SessionStore(store.db);
      const from = { userId: "usr_a", createdAt: 0, userAgent: null, address: "2001:db8::1" };
      for (const n of [1, 2, 3]) await sessions.insert({ ...from, id: `sis_${n}`, expiresAt: n * 1000 }, `c${n}`);
      const ids = async (now: number): Promise<string[]> => (await sessions.list("usr_a", now)).map(({ id }) => id);
      expect(await ids(1000)).toEqual(["sis_3", "sis_2"]);
      expect(await sessions.list("usr_b", 0)).toEqual([]);
      await sessions.extend("sis_1", { now: 500, expiresAt: 5000 });
      expect(await ids(4000)).toEqual(["sis_1"]);
      expect(await sessions.deleteEnded(2500, 10)).toBe(1);
      expect([...(await sessions.deleteOthers("usr_a", "sis_3"))]).toEqual(["sis_1"]);
      expect(await ids(0)).toEqual(["sis_3"]);
      expect(await sessions.deleteOthers("usr_a", null)).toEqual(["sis_3"]);
    });
  });
}
