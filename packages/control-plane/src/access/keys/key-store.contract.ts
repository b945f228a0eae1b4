import { isUniqueViolation } from "@fairlead/hosting/errors/store-errors";
import { NO_LIMITS } from "@fairlead/protocol/key-limits";
import { MAX_NANO_DOLLARS } from "@fairlead/protocol/values/money";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import { insertProject, insertUser, type OpenStore } from "../../testing.fixture.ts";
import type { KeyRecord } from "./key.ts";
import { KeyStore } from "./key-store.ts";

export function keyStoreContract(name: string, open: OpenStore): void {
  describe(`the key store on ${name}`, () => {
    let store: OpenedDatabase;
    let keys: KeyStore;
    const record: KeyRecord = {
      id: "key_1",
      projectId: "prj_1",
      userId: "usr_1",
      name: "näme",
      publicId: "pub1",
      secretHash: "hash1",
      enabled: true,
      expiresAt: null,
      limits: NO_LIMITS,
      lastUsedAt: null,
      previous: null,
      createdAt: 1,
    };
    const limits = {
      modelAllowList: ["a/*", "„quotes\" and 'more'; drop table project_key --", "ä/🔑"],
      requestsPerMinute: 60,
      tokensPerMinute: 1_000_000_000,
      parallelCalls: 4,
      budget: { total: MAX_NANO_DOLLARS, daily: 0, monthly: null },
    };
    const previous = { publicId: "pub0", secretHash: "hash0", endsAt: 9e12, lastUsedAt: 7e12 };

    beforeEach(async () => {
      store = await open();
      keys = new KeyStore(store.db);
      await insertUser(store, "usr_1");
      await insertProject(store, "prj_1", "usr_1");
    });
    afterEach(() => store.close());

    test("finds a key by its hash, as it was stored", async () => {
      const other: KeyRecord = {
        ...record,
        id: "key_2",
        publicId: "pub2",
        secretHash: "hash2",
        enabled: false,
        expiresAt: 9e12,
        limits,
        lastUsedAt: 8e12,
        previous,
      };
      await keys.insert(record);
      await keys.insert(other);
      expect(await keys.findByHash("hash1")).toEqual(record);
      expect(await keys.findByHash("hash2")).toEqual(other);
      expect(await keys.findByHash("hash0")).toEqual(other);
      expect(await keys.findByHash("hash3")).toBeNull();
    });

    test("finds a key by its ID only in its own project", async () => {
      await keys.insert(record);
      for (const find of [keys.find.bind(keys), keys.findForUpdate.bind(keys)]) {
        expect(await find("prj_1", "key_1")).toEqual(record);
        expect(await find("prj_2", "key_1")).toBeNull();
        expect(await find("prj_1", "key_2")).toBeNull();
      }
    });

    test("changes and deletes a key only in its own project", async () => {
      await keys.insert(record);
      const settings = { name: "other", enabled: false, expiresAt: 5, limits };
      await keys.setSettings("prj_2", "key_1", settings);
      await keys.setSecrets("prj_2", "key_1", { publicId: "pub9", secretHash: "hash9", previous });
      await keys.setUsed([{ projectId: "prj_2", id: "key_1", at: 5, withPrevious: false }]);
      await keys.delete("prj_2", "key_1");
      expect(await keys.find("prj_1", "key_1")).toEqual(record);
      await keys.setSettings("prj_1", "key_1", settings);
      await keys.setSecrets("prj_1", "key_1", { publicId: "pub9", secretHash: "hash9", previous });
      expect(await keys.find("prj_1", "key_1")).toEqual({
        ...record,
        ...settings,
        publicId: "pub9",
        secretHash: "hash9",
        previous,
      });
      await keys.setSecrets("prj_1", "key_1", { publicId: "pub9", secretHash: "hash9", previous: null });
      expect((await keys.find("prj_1", "key_1"))?.previous).toBeNull();
      await keys.delete("prj_1", "key_1");
      expect(await keys.find("prj_1", "key_1")).toBeNull();
    });

    test("records when a key was used, and with which secret", async () => {
      await keys.insert({ ...record, previous });
      await keys.insert({ ...record, id: "key_2", publicId: "pub2", secretHash: "hash2" });
      await keys.setUsed([
        { projectId: "prj_1", id: "key_1", at: 10, withPrevious: true },
        { projectId: "prj_1", id: "key_2", at: 20, withPrevious: false },
        { projectId: "prj_1", id: "key_gone", at: 30, withPrevious: false },
      ]);
      expect(await keys.find("prj_1", "key_1")).toMatchObject({ lastUsedAt: 10, previous: { lastUsedAt: 10 } });
      expect(await keys.find("prj_1", "key_2")).toMatchObject({ lastUsedAt: 20, previous: null });
    });

    test("lists a project's keys in order and page by page, all of them or those of one user", async () => {
      await insertProject(store, "prj_2", "usr_1");
      const add = (n: number, change: Partial<KeyRecord>): Promise<void> =>
        keys.insert({ ...record, id: `key_${n}`, publicId: `pub${n}`, secretHash: `hash${n}`, ...change });
      for (const [n, change] of [{}, { userId: "usr_2" }, { projectId: "prj_2" }, {}].entries()) await add(n, change);
      const idsOf = async (page: Parameters<KeyStore["list"]>[1]): Promise<string[]> =>
        (await keys.list("prj_1", page)).map(({ id }) => id);
      expect(await idsOf({ userId: null, after: null, limit: 10 })).toEqual(["key_0", "key_1", "key_3"]);
      expect(await idsOf({ userId: null, after: "key_0", limit: 1 })).toEqual(["key_1"]);
      expect(await idsOf({ userId: "usr_2", after: null, limit: 10 })).toEqual(["key_1"]);
      expect(await idsOf({ userId: "usr_3", after: null, limit: 10 })).toEqual([]);
    });

    test("disables the enabled keys of one user in one project, or of the whole project", async () => {
      await insertProject(store, "prj_2", "usr_1");
      const add = (n: number, change: Partial<KeyRecord>): Promise<void> =>
        keys.insert({ ...record, id: `key_${n}`, publicId: `pub${n}`, secretHash: `hash${n}`, ...change });
      await add(1, {});
      await add(2, { enabled: false });
      await add(3, { userId: "usr_2" });
      await add(4, { projectId: "prj_2" });
      expect(await keys.disable("prj_1", "usr_1")).toEqual(["key_1"]);
      expect(await keys.disable("prj_1", "usr_1")).toEqual([]);
      expect((await keys.findByHash("hash1"))?.enabled).toBe(false);
      expect(await keys.disable("prj_1", null)).toEqual(["key_3"]);
      expect((await keys.findByHash("hash4"))?.enabled).toBe(true);
    });

    test("rejects a second key with the same hash or public ID", async () => {
      await keys.insert(record);
      for (const same of [{ publicId: "pub1" }, { secretHash: "hash1" }]) {
        const again = { ...record, id: "key_2", publicId: "pub2", secretHash: "hash2", ...same };
        await expect(keys.insert(again)).rejects.toSatisfy(isUniqueViolation);
      }
    });

    test("keeps no key of a deleted project", async () => {
      await keys.insert(record);
      await store.db.deleteFrom("project").execute();
      expect(await keys.findByHash("hash1")).toBeNull();
    });
  });
}
