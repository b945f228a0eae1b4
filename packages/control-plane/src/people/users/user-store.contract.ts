import { isUniqueViolation } from "@fairlead/hosting/errors/store-errors";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import type { OpenStore } from "../../testing.fixture.ts";
import { SessionStore } from "./session-store.ts";
import { UserStore } from "./user-store.ts";

export function userStoreContract(name: string, open: OpenStore): void {
  describe(`the user stores on ${name}`, () => {
    let store: OpenedDatabase;
    let users: UserStore;
    let sessions: SessionStore;
    const from = { userAgent: "Firefox", address: null };
    const ann = { id: "usr_1", email: "ann@example.org", name: "Ann", platformAdmin: false, createdAt: 1_000 };

    beforeEach(async () => {
      store = await open();
      users = new UserStore(store.db);
      sessions = new SessionStore(store.db);
      await users.insert(ann);
    });
    afterEach(() => store.close());

    test("find a user by email address, as they were stored", async () => {
      expect(await users.findByEmail("ann@example.org")).toEqual(ann);
      expect(await users.findByEmail("bob@example.org")).toBeNull();
    });

    test("report whether any user exists", async () => {
      expect(await users.hasAny()).toBe(true);
      await store.db.deleteFrom("user").execute();
      expect(await users.hasAny()).toBe(false);
    });

    test("keep one user per email address", async () => {
      await expect(users.insert({ ...ann, id: "usr_2" })).rejects.toSatisfy(isUniqueViolation);
    });

    test("make a user a platform administrator", async () => {
      await users.makePlatformAdmin("usr_1", 2_000);
      expect(await users.findByEmail(ann.email)).toEqual({ ...ann, platformAdmin: true });
    });

    test("return a session's owner until the session or the user is deleted", async () => {
      await sessions.insert({ id: "sis_1", userId: "usr_1", createdAt: 0, expiresAt: 5_000, ...from }, "c1");
      await sessions.insert({ id: "sis_2", userId: "usr_1", createdAt: 0, expiresAt: 9_000, ...from }, "c2");
      expect(await sessions.findOwner("sis_1")).toEqual({ userId: "usr_1", platformAdmin: false, expiresAt: 5_000 });
      await sessions.deleteExpired("usr_1", 6_000);
      expect(await sessions.findOwner("sis_1")).toBeNull();
      expect(await sessions.findOwner("sis_2")).not.toBeNull();
      await store.db.deleteFrom("user").execute();
      expect(await sessions.findOwner("sis_2")).toBeNull();
    });
  });
}
